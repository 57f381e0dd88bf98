import type { Terminal } from '../../terminal/terminal.ts'

export interface MadeKey {
  id: string
  prefix: string
  key: string
}

export function showKey(terminal: Terminal, made: MadeKey): void {
  terminal.details(made, [
    ['key', made.key],
    ['id', made.id],
  ])
  terminal.note('the key is not shown again')
}
