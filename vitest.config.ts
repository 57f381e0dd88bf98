import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Packages import each other by name; under test they are loaded from their sources.
  resolve: { conditions: ['belfry:source', ...defaultServerConditions] },
  ssr: { resolve: { conditions: ['belfry:source', ...defaultServerConditions] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
    globalSetup: ['packages/engine/test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 3,
    isolate: false,
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
