import { statement } from './statement.ts'

export const PING = statement('ping', 'select 1')
