/** Which edition of the IANA zone data this process reckons with, such as `2025b`; null: the runtime does not say. */
export const zoneDataVersion = (): string | null => process.versions.tz ?? null
