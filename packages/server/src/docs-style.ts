/** The page's look, in light and dark. It stands within the page, whose policy allows exactly this text. */
export const STYLE = `
:root { color-scheme: light dark; --ground: #fbfaf8; --card: #fff; --ink: #1f2328; --soft: #5c6470; --line: #e4e1da; --tint: #f3f1ec; --accent: #9a4b12;
  --get: #1a6b4a; --post: #1f5fa8; --put: #8a5a00; --patch: #7a3fa0; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #15171b; --card: #1b1e23; --ink: #e4e6ea; --soft: #9aa3b0; --line: #2c3038; --tint: #22262d; --accent: #f0a868;
  --get: #6cc79b; --post: #7fb2f0; --put: #e0b45a; --patch: #c79be8; --delete: #f2938c; } }
* { box-sizing: border-box }
html { scroll-padding-top: 1.5rem }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; display: grid; grid-template-columns: 19rem minmax(0, 1fr) }
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em }
a:hover { text-decoration-color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px }
code, pre, .path, .name { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em }
p code, li code, dd code { background: var(--tint); padding: .1em .35em; border-radius: 4px; overflow-wrap: anywhere }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.75rem 1rem 2rem 1.5rem; border-right: 1px solid var(--line); font-size: .875rem }
nav h1 { margin: 0 0 .25rem; font-size: 1.25rem; letter-spacing: -.01em }
nav .version { color: var(--soft); margin: 0 0 1.25rem }
nav h2 { margin: 1.4rem 0 .35rem; font-size: .72rem; letter-spacing: .08em; text-transform: uppercase; color: var(--soft) }
nav ul { list-style: none; margin: 0; padding: 0 }
nav li a { display: flex; gap: .6rem; padding: .18rem .4rem; border-radius: 6px; text-decoration: none; align-items: baseline }
nav li a:hover { background: var(--tint) }
nav .method { width: 2.9rem; flex: none; font-size: .66rem }
main { padding: 2.5rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 62rem }
main > h2 { margin: 3.5rem 0 1rem; font-size: 1.6rem; letter-spacing: -.015em }
.method { font: 600 .75rem/1 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; color: var(--of) }
.get { --of: var(--get) } .post { --of: var(--post) } .put { --of: var(--put) } .patch { --of: var(--patch) } .delete { --of: var(--delete) }
article { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.4rem 1.6rem; margin: 0 0 1.25rem }
article:target { border-color: var(--accent) }
article > header { display: flex; flex-wrap: wrap; gap: .4rem .75rem; align-items: baseline }
article h3 { margin: 0; font-size: 1.08rem; flex-basis: 100% }
article h4 { margin: 1.3rem 0 .4rem; font-size: .72rem; letter-spacing: .08em; text-transform: uppercase; color: var(--soft) }
.path { overflow-wrap: anywhere }
.scope { margin-left: auto; font-size: .75rem; color: var(--soft); border: 1px solid var(--line); border-radius: 99px; padding: .05rem .6rem }
dl { margin: 0; border-top: 1px solid var(--line) }
dl > div { display: grid; grid-template-columns: minmax(9rem, 14rem) minmax(0, 1fr); gap: .25rem 1.25rem; padding: .5rem 0; border-bottom: 1px solid var(--line) }
dl dl { grid-column: 1 / -1; margin-left: 1.1rem; border-top: 0; border-left: 2px solid var(--line); padding-left: 1rem }
dl dl > div:last-child { border-bottom: 0 }
dt { overflow-wrap: anywhere } dd { margin: 0 }
.kind { display: block; font-size: .78rem; color: var(--soft) }
.must { color: var(--accent); font-size: .72rem }
.note { color: var(--soft); font-size: .85rem; margin: .15rem 0 0 }
pre { margin: .3rem 0 0; padding: .9rem 1.1rem; background: var(--tint); border-radius: 8px; overflow-x: auto; line-height: 1.5 }
.answers { list-style: none; margin: 0; padding: 0; font-size: .9rem }
.answers li { display: flex; gap: .8rem; padding: .15rem 0 }
.answers b { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-weight: 600; width: 2.4rem }
summary { cursor: pointer; color: var(--soft); font-size: .85rem; margin-top: .4rem }
@media (max-width: 52rem) { body { display: block } nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line) } dl > div { grid-template-columns: minmax(0, 1fr) } article { padding: 1.1rem } }
@media print { nav { display: none } body { display: block } article { break-inside: avoid } }
`
