import { expect, test } from 'vitest'
import { COMMANDS } from '../commands.ts'
import { findCommand } from './find-command.ts'
import { helpOf } from './help.ts'
import { parseWords } from './parse-words.ts'

function parse(line: string) {
  const { command, rest } = findCommand(COMMANDS, line.split(' '))
  return parseWords(command, rest)
}

test('flags and operands may stand in any order', () => {
  const { operands, flags } = parse('jobs pause --reason maintenance digest --json')
  expect(operands).toEqual(['digest'])
  expect(flags.text('reason')).toBe('maintenance')
  expect(flags.is('json')).toBe(true)
})

test('a flag that may be given several times keeps all its values', () => {
  expect(parse('jobs create --header a:1 --header=b:2').flags.all('header')).toEqual(['a:1', 'b:2'])
})

test.each([
  ['dance', /there is no `belfry dance`; there are start, /],
  ['job list', /did you mean `belfry jobs`\?/],
  ['jobs lst', /there is no `belfry jobs lst`; did you mean `belfry jobs list`\?/],
  ['jobs', /`belfry jobs` needs to know what to do: create, list, /],
  ['jobs create --crno x', /`belfry jobs create` has no --crno; did you mean --cron\?/],
  ['jobs create --frobnicate', /has no --frobnicate; `belfry help jobs create` shows what there is/],
  ['jobs create --cron', /--cron needs a value: --cron <expression>/],
  ['jobs create --cron --url x', /--cron needs a value/],
  ['jobs create --every a --every b', /--every is given twice/],
  ['jobs list --json=1', /--json takes no value/],
  ['jobs get', /`belfry jobs get` needs the job's id or name: belfry jobs get <job>/],
  ['jobs get a b', /does not take "b"/],
  ['jobs create -x', /has no -x/],
  ['jobs create --__proto__ x', /has no --__proto__/],
])('`belfry %s` is refused with what would be right', (line, complaint) => {
  expect(() => parse(line)).toThrow(complaint)
})

test('help wins over what is missing', () => {
  expect(parse('jobs get --help').wantsHelp).toBe(true)
  expect(parse('jobs get -h').wantsHelp).toBe(true)
})

test.each(COMMANDS.map((command) => [command.name, command] as const))(
  'the help of `%s` names each of its flags',
  (_, command) => {
    const help = helpOf(command)
    expect(help).toContain(`belfry ${command.name}`)
    for (const name of Object.keys(command.flags)) expect(help).toContain(`--${name}`)
  },
)
