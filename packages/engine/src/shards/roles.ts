/** What a node does, as bits of `nodes.roles`: deciding, executing and answering can scale and fail apart. */
const ROLE = { api: 1, promoter: 2, dispatcher: 4, archivist: 8 } as const

export type Role = keyof typeof ROLE

export const ALL_ROLES = Object.keys(ROLE) as readonly Role[]

export const bitsOfRoles = (roles: readonly Role[]): number => roles.reduce((bits, role) => bits | ROLE[role], 0)

export const rolesOfBits = (bits: number): Role[] => ALL_ROLES.filter((role) => (bits & ROLE[role]) !== 0)

export const PROMOTER_BIT = ROLE.promoter
