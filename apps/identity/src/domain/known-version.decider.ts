/** A fact of another stream, as whoever has to tell what began without knowing of it has it. */
export interface LaterFact {
  readonly version: number;
  /** ISO 8601. */
  readonly at: string;
}

/** What goes by another stream: a session, a sign-in, a code, a factor. */
export interface Beginning {
  /** ISO 8601. */
  readonly began_at: string;
  /** Of the other stream, the version of the last fact that counts here and that it knew of; 0: none. Absent: it was recorded before this was kept. */
  readonly known_version: number | undefined;
}

/**
 * Whether something began without knowing of a fact. Versions tell, and no clock: those of replicas differ, and times are taken before they are recorded. What was recorded
 * before versions were kept goes by its time.
 */
export function isUnknownTo({ began_at, known_version }: Beginning, { version, at }: LaterFact): boolean {
  return known_version === undefined ? at >= began_at : version > known_version;
}
