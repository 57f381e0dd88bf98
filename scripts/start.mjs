// `npm start`: the command without any word, which starts a node.
import '../packages/cli/bin/belfry.mjs'
