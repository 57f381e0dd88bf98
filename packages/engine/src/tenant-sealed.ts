import type { CircuitView } from './executors/http/circuits.ts'
import { OfScope } from './scope.ts'
import type { TenantScope } from './tenant-scope.ts'
import type { Payloads, StoredPayload } from './vault/payloads.sql.ts'
import type { SigningKeyView } from './vault/signing-keys.sql.ts'

/** A tenant's payloads, kept apart from its jobs. */
export class TenantPayloads extends OfScope<TenantScope> {
  put(bytes: Buffer, contentType: string): Promise<StoredPayload> {
    return this.scope.engine.http.payloads.put(this.scope.caller.tenantId, bytes, contentType)
  }

  /** Null: there is none. Reading it is a use. */
  get(payloadRef: string): ReturnType<Payloads['get']> {
    return this.scope.engine.http.payloads.get(this.scope.caller.tenantId, payloadRef)
  }

  /** False: there was none. */
  delete(payloadRef: string): Promise<boolean> {
    return this.scope.engine.http.payloads.delete(this.scope.caller.tenantId, payloadRef)
  }
}

/** A tenant's secrets: written, named, used at dispatch, and never read back. */
export class TenantSecrets extends OfScope<TenantScope> {
  put(name: string, value: string): Promise<void> {
    const { engine, caller } = this.scope
    return engine.http.secrets.put(caller.tenantId, name, value, caller.actor)
  }

  list(): Promise<{ name: string; updatedAt: Date }[]> {
    return this.scope.engine.http.secrets.list(this.scope.caller.tenantId)
  }

  /** False: there was none. */
  delete(name: string): Promise<boolean> {
    const { engine, caller } = this.scope
    return engine.http.secrets.delete(caller.tenantId, name, caller.actor)
  }
}

/** The keys that requests to a tenant's targets are signed with. */
export class TenantSigningKeys extends OfScope<TenantScope> {
  list(): Promise<SigningKeyView[]> {
    return this.scope.engine.http.signingKeys.list(this.scope.caller.tenantId)
  }

  /** A new key; the old ones sign too for this long. */
  rotate(overlapMs: number): Promise<SigningKeyView> {
    const { engine, caller } = this.scope
    return engine.http.signingKeys.rotate(caller.tenantId, overlapMs, caller.actor)
  }
}

/** A tenant's circuits that are not closed. */
export class TenantCircuits extends OfScope<TenantScope> {
  list(): Promise<CircuitView[]> {
    return this.scope.engine.http.circuits.list(this.scope.caller.tenantId)
  }

  /** False: it was not open. */
  reset(origin: string): Promise<boolean> {
    return this.scope.engine.http.circuits.reset(this.scope.caller.tenantId, origin)
  }
}
