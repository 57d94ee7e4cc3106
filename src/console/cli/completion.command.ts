import { Argument, Command } from 'commander'
import { commandsWithin } from './examples.ts'
import { withExitCodes } from './exit-codes.ts'

/** `completion`: prints a script by which a shell completes commands and options. */
export function completionCommand(createProgram: () => Promise<Command>): Command {
  const command = new Command('completion')
    .description('print the script that makes a shell complete commands and options')
    .addArgument(new Argument('<shell>').choices(Object.keys(SHELLS)))
    .action(async (shell: Shell) => {
      const commands = commandsWithin(await createProgram()).map(completableOf)
      process.stdout.write(scriptFor(shell, commands))
    })
  return withExitCodes(command)
}

function completableOf({ path, command }: { readonly path: string; readonly command: Command }): Completable {
  return {
    path,
    about: command.description(),
    words: command.commands.map((one) => one.name()),
    values: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    options: command.options
      .filter(({ hidden, long }) => !hidden && typeof long === 'string')
      .map(({ long, description, argChoices, flags }) => ({
        name: long ?? '',
        about: description,
        takesValue: /[<[]/.test(flags),
        values: argChoices ?? [],
      })),
  }
}

/** A command, and the words with which a shell can complete it. */
interface Completable {
  /** The words after `parcel-relay` that name the command; empty: the program itself. */
  readonly path: string
  readonly about: string
  /** The names of its subcommands. */
  readonly words: readonly string[]
  /** The values that its arguments may have. */
  readonly values: readonly string[]
  readonly options: readonly CompletableOption[]
}

interface CompletableOption {
  /** The name with its dashes, such as `--json`. */
  readonly name: string
  readonly about: string
  readonly takesValue: boolean
  /** The only values that the option takes; empty: it takes any value, such as the name of a file. */
  readonly values: readonly string[]
}

/** Makes the script for each shell. A script contains all commands, so completing need not start `parcel-relay`. */
const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

type Shell = keyof typeof SHELLS

function scriptFor(shell: Shell, commands: readonly Completable[]): string {
  return SHELLS[shell](commands)
}

const HELP: CompletableOption = { name: '--help', about: 'display help for command', takesValue: false, values: [] }

/** Joins the paths of commands to the pattern of a shell `case`. */
const paths = (commands: readonly Completable[]) => commands.map(({ path }) => `'${path}'`).join('|')

const candidates = ({ words, values, options }: Completable) => [...words, ...values, ...[...options, HELP].map(({ name }) => name)]

/** Writes the branches of a shell `case` for the options that take only certain values. */
function valueCases(commands: readonly Completable[], act: (values: readonly string[]) => string): readonly string[] {
  return commands.flatMap(({ path, options }) =>
    options.filter(({ values }) => values.length > 0).map(({ name, values }) => `    '${path} ${name}') ${act(values)} ;;`),
  )
}

function bashScript(commands: readonly Completable[]): string {
  return `# bash completion of parcel-relay. Put it in /etc/bash_completion.d, or: source <(parcel-relay completion bash)
_parcel_relay() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' word at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${path:+$path }\${COMP_WORDS[at]}"
    case "$word" in ${paths(commands.filter(({ path }) => path !== ''))}) path="$word" ;; esac
  done
  COMPREPLY=()
  case "$path \${COMP_WORDS[COMP_CWORD - 1]}" in
${valueCases(commands, (values) => `COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$current")); return`).join('\n')}
  esac
  case "$path" in
${commands.map((one) => `    '${one.path}') COMPREPLY=($(compgen -W '${candidates(one).join(' ')}' -- "$current")) ;;`).join('\n')}
  esac
}
complete -o default -F _parcel_relay parcel-relay
`
}

function zshScript(commands: readonly Completable[]): string {
  const described = (one: Completable) => [
    ...one.words.map((word) => zshItem(word, commands.find(({ path }) => path === `${one.path} ${word}`.trim())?.about ?? '')),
    ...one.values.map((value) => zshItem(value, '')),
    ...[...one.options, HELP].map(({ name, about }) => zshItem(name, about)),
  ]
  return `#compdef parcel-relay
# zsh completion of parcel-relay. Save it as _parcel-relay in a folder of $fpath, or: source <(parcel-relay completion zsh)
_parcel_relay() {
  local command_path='' word
  local -a found
  for word in "\${(@)words[2,CURRENT-1]}"; do
    word="\${command_path:+$command_path }$word"
    case "$word" in (${paths(commands.filter(({ path }) => path !== ''))}) command_path="$word" ;; esac
  done
  case "$command_path \${words[CURRENT-1]}" in
${valueCases(commands, (values) => `compadd -- ${values.join(' ')}; return`)
  .map((line) => line.replace("    '", "    ('"))
  .join('\n')}
  esac
  case "$command_path" in
${commands.map((one) => `    ('${one.path}') found=(${described(one).join(' ')}) ;;`).join('\n')}
  esac
  _describe parcel-relay found || _files
}
if [ "$funcstack[1]" = _parcel-relay ]; then _parcel_relay "$@"; else compdef _parcel_relay parcel-relay; fi
`
}

function zshItem(name: string, about: string): string {
  return `'${name}${about === '' ? '' : `:${about.replaceAll("'", "'\\''").replaceAll(':', '\\:')}`}'`
}

function fishScript(commands: readonly Completable[]): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ path, words, values, options }) => {
    const at = `complete -c parcel-relay -n '__parcel_relay_at "${path}"'`
    const about = (word: string) => commands.find((one) => one.path === `${path} ${word}`.trim())?.about ?? ''
    return [
      ...words.map((word) => `${at} -f -a ${word} -d ${quoted(about(word))}`),
      ...values.map((value) => `${at} -f -a ${value}`),
      ...[...options, HELP].map(({ name, about: what, takesValue, values: choices }) => {
        const value = !takesValue ? '' : choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : ' -r'
        return `${at} -l ${name.replace(/^--/, '')}${value} -d ${quoted(what)}`
      }),
    ]
  })
  return `# fish completion of parcel-relay. Save it as ~/.config/fish/completions/parcel-relay.fish
function __parcel_relay_at
  set -l path ''
  for word in (commandline -opc)[2..]
    set -l longer (string trim -- "$path $word")
    contains -- $longer ${commands
      .filter(({ path }) => path !== '')
      .map(({ path }) => quoted(path))
      .join(' ')}; and set path $longer
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}
`
}
