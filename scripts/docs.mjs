// `npm run docs`: writes the parts of the documents that are generated from the sources.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runnerImport } from 'vite'
import { writeMoves } from './describe-moves.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const page = join(root, 'docs', 'internals', 'states.md')
const source = join(root, 'packages', 'engine', 'src', 'job', 'transitions.ts')

const { TRANSITIONS } = (await runnerImport(source, { configFile: false, logLevel: 'error' })).module
writeFileSync(page, writeMoves(readFileSync(page, 'utf8'), TRANSITIONS))
