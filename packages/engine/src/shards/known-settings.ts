/** What was set for some of many queues or tenants, by their numbers, as this node learnt it with its last pulse. */
export class KnownSettings<Settings extends { id: number }> {
  readonly #none: Settings
  #byId: ReadonlyMap<number, Settings> = new Map()

  /** `none` is for all of which nothing was set. */
  constructor(none: Settings) {
    this.#none = none
  }

  learn(settings: readonly Settings[]): void {
    this.#byId = new Map(settings.map((one) => [one.id, one]))
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0
  }

  of(id: number): Settings {
    return this.#byId.get(id) ?? this.#none
  }
}
