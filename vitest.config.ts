import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * They kill processes, wait for real time, or simulate a year. Begun last, each would keep one worker busy while the others
 * are done. Those that wait stand beside those that compute.
 */
const LONGEST = [
  'server/test/fuzz.test.ts',
  'client/test/examples.test.ts',
  'engine/test/faults/outage.test.ts',
  'engine/test/years/year.test.ts',
  'engine/test/chaos/chaos.test.ts',
  'engine/test/chaos/late-changes.test.ts',
  'engine/test/years/edits.test.ts',
  'cli/test/killed-processes.test.ts',
  'client/test/chaos.test.ts',
  'engine/test/faults/lost-notifications.test.ts',
  'cli/test/start.test.ts',
  'cli/test/processes.test.ts',
  'server/test/chaos-nodes.test.ts',
  'engine/test/chaos/take-over.test.ts',
  'client/test/recovery.test.ts',
  'engine/src/store/embedded/embedded-server.test.ts',
  'client/test/worker-process.test.ts',
  'engine/test/chaos/key-limits.test.ts',
  'engine/test/years/outages.test.ts',
  'engine/test/faults/odd-handlers.test.ts',
  'engine/test/faults/failover.test.ts',
  'engine/test/faults/read-only.test.ts',
  'client/test/worker-away.test.ts',
  'engine/test/behaviour/explain-histories.test.ts',
  'engine/test/behaviour/plans.test.ts',
  'engine/src/history/partitioner.test.ts',
  'client/test/recovery-many.test.ts',
  'engine/test/schedules/brute-force.test.ts',
  'server/test/leases.test.ts',
  'engine/test/tenants/nodes.test.ts',
  'server/test/isolation.test.ts',
]

/** Without times of an earlier run, as after a fresh checkout, vitest would begin with the files that have the most text. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((path) => moduleId.endsWith(`/packages/${path}`))
      return place === -1 ? LONGEST.length : place
    }
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other))
  }
}

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
    sequence: { sequencer: LongestFirst },
    // Whoever waits for something gets it as soon as it is there. How long a slow machine may take must not decide a test.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})
