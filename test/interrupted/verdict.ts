/** An event, by where it lies in its stream. */
export interface Written {
  readonly id: string;
  readonly stream: string;
  readonly version: number;
}

/** What is wrong with a log; all of it is empty where nothing is. */
export interface Verdict {
  /** Acknowledged, and not there. */
  readonly lost: readonly string[];
  /** There more than once. */
  readonly doubled: readonly string[];
  /** There, and acknowledged to nobody, though every writer insisted until it was. */
  readonly unknown: readonly string[];
  /** Elsewhere in its stream than was acknowledged, or behind a version that is missing. */
  readonly misplaced: readonly string[];
  /** Where a follower first saw something else than the log holds there: its number, and the place. */
  readonly apart: readonly string[];
}

/** Holds the log, and what followers saw of it, to what writers were told. */
export function verdictOn(log: readonly Written[], acknowledged: readonly Written[], followers: readonly (readonly string[])[]): Verdict {
  const places = new Map<string, Written>();
  const versions = new Map<string, number>();
  const doubled: string[] = [];
  const misplaced = new Set<string>();
  for (const event of log) {
    if (places.has(event.id)) doubled.push(event.id);
    places.set(event.id, event);
    const next = (versions.get(event.stream) ?? 0) + 1;
    if (event.version !== next) misplaced.add(event.id);
    versions.set(event.stream, event.version);
  }
  const lost: string[] = [];
  const told = new Set<string>();
  for (const { id, stream, version } of acknowledged) {
    told.add(id);
    const place = places.get(id);
    if (place === undefined) lost.push(id);
    else if (place.stream !== stream || place.version !== version) misplaced.add(id);
  }
  const unknown = [...places.keys()].filter((id) => !told.has(id));
  const apart = followers.flatMap((seen, number) => {
    const length = Math.max(seen.length, log.length);
    for (let place = 0; place < length; place++) if (seen[place] !== log[place]?.id) return [`follower ${number} at ${place}`];
    return [];
  });
  return { lost, doubled, unknown, misplaced: [...misplaced], apart };
}
