import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { COMMANDS } from '../src/commands.ts'

const read = (name: string) => readFileSync(new URL(`../../../docs/reference/${name}.md`, import.meta.url), 'utf8')

test('the page of the command line names every command and every flag', () => {
  const page = read('cli')
  for (const { name, flags } of COMMANDS) {
    expect(page).toContain(`\`${name}`)
    for (const flag of Object.keys(flags)) expect(page, `--${flag} of ${name}`).toContain(`--${flag}`)
  }
})

test('the page of the configuration names every variable that the sources read', () => {
  const page = read('configuration')
  const source = readFileSync(new URL('../src/start/start-options.ts', import.meta.url), 'utf8')
  const variables = new Set(source.match(/\bBELFRY_[A-Z_]*[A-Z]\b/g))
  expect(variables.size).toBeGreaterThan(10)
  for (const variable of variables) expect(page).toContain(`\`${variable}\``)
})
