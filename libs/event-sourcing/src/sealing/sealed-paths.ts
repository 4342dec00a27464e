/** Names one or many values in a tree of values: `data.email`, and `data.addresses.*.street` in every item of a list. */
export type Path = string;

/** Paths as a tree, as the list that each look goes through; what ends one is the path itself. */
interface PathTree {
  readonly names: readonly (readonly [name: string, below: Path | PathTree])[];
  /** Of every item of a list. */
  readonly item: Path | PathTree | undefined;
}

interface Branches {
  [name: string]: Path | Branches;
}

const EVERY_ITEM = '*';
/** Records of a type name few sets of paths. */
const KNOWN_SETS = 1_000;
const known = new Map<string, PathTree>();
/** By lists that last. */
const lastingTrees = new WeakMap<readonly Path[], PathTree>();

/** What stands in the place of a value; `at` is where exactly it stands, `path` what names it. */
export type Replace = (value: unknown, at: string, path: Path) => unknown;

/** A copy with every value that a path names replaced, in which nothing else changes; what is absent or null stays so. */
export function replacedAt<Value>(value: Value, paths: readonly Path[], replace: Replace): Value {
  return replacedIn(value, treeOf(paths), '', replace) as Value;
}

/** Whether anything stands where one of the paths leads. */
export function isAnythingAt(value: unknown, paths: readonly Path[]): boolean {
  return isAnythingIn(value, treeOf(paths));
}

/** A copy that leaves out what the paths name. */
export function without<Value extends object>(value: Value, paths: readonly Path[]): Value {
  const copy = structuredClone(value);
  const leave = (from: unknown, [name, ...below]: readonly string[]): void => {
    if (typeof from !== 'object' || from === null) return;
    if (name === EVERY_ITEM && Array.isArray(from)) return from.forEach((item) => leave(item, below));
    if (below.length > 0) return leave((from as Record<string, unknown>)[name!], below);
    delete (from as Record<string, unknown>)[name!];
  };
  for (const path of paths) leave(copy, path.split('.'));
  return copy;
}

/** Has this very list known from now on, so that its names need not be gone through to find what was made of it. */
export function lasting(paths: readonly Path[]): readonly Path[] {
  lastingTrees.set(paths, treeNamed(paths));
  return paths;
}

/** Whether a path is among these, or below one of them. */
export function covers(paths: readonly Path[], path: Path): boolean {
  return paths.some((each) => path === each || path.startsWith(`${each}.`));
}

function replacedIn(value: unknown, tree: PathTree, above: string, replace: Replace): unknown {
  if (Array.isArray(value)) {
    const { item } = tree;
    return item === undefined ? value : value.map((each, index) => replacedBy(each, item, `${above}${index}`, replace));
  }
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const [name, below] of tree.names) if (Object.hasOwn(copy, name)) copy[name] = replacedBy(copy[name], below, above + name, replace);
  return copy;
}

function replacedBy(value: unknown, below: Path | PathTree, at: string, replace: Replace): unknown {
  if (value === null || value === undefined) return value;
  return typeof below === 'string' ? replace(value, at, below) : replacedIn(value, below, `${at}.`, replace);
}

function isAnythingIn(value: unknown, tree: PathTree): boolean {
  const isBelow = (each: unknown, below: Path | PathTree): boolean =>
    each !== null && each !== undefined && (typeof below === 'string' || isAnythingIn(each, below));
  if (Array.isArray(value)) {
    const { item } = tree;
    return item !== undefined && value.some((each) => isBelow(each, item));
  }
  if (typeof value !== 'object' || value === null) return false;
  return tree.names.some(([name, below]) => Object.hasOwn(value, name) && isBelow((value as Record<string, unknown>)[name], below));
}

function treeOf(paths: readonly Path[]): PathTree {
  return lastingTrees.get(paths) ?? treeNamed(paths);
}

function treeNamed(paths: readonly Path[]): PathTree {
  const name = paths.join(' ');
  let tree = known.get(name);
  if (tree === undefined) {
    tree = grown(paths);
    if (known.size === KNOWN_SETS) known.clear();
    known.set(name, tree);
  }
  return tree;
}

/** A path below another one names nothing more. */
function grown(paths: readonly Path[]): PathTree {
  const root: Branches = {};
  for (const path of paths.filter((each) => !paths.some((other) => each !== other && covers([other], each)))) {
    const names = path.split('.');
    let branch = root;
    for (const name of names.slice(0, -1)) branch = (branch[name] ??= {}) as Branches;
    branch[names.at(-1)!] = path;
  }
  return listed(root);
}

function listed(branches: Branches): PathTree {
  const names = Object.entries(branches).map(([name, below]) => [name, typeof below === 'string' ? below : listed(below)] as const);
  return { names, item: names.find(([name]) => name === EVERY_ITEM)?.[1] };
}
