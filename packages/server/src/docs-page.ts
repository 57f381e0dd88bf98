import type { OpenApiDocument } from './openapi-document.ts'

export function docsPage(document: OpenApiDocument): string {
  return `<!doctype html><title>${document.info.title}</title>`
}
