/** What somebody asks a container over HTTP: a path, at a port where it listens. */
export interface Asked {
  readonly path: string;
  readonly port: number;
}

/** What a container of the image is started with, whoever describes it. */
export interface AppContainer {
  /** Of the app or the job. */
  readonly name: string;
  /** After the words of the image's entry point. */
  readonly args: readonly string[];
  /** All that it is told, what the image says included. */
  readonly variables: Readonly<Record<string, string>>;
  /** `user:group`, by number. */
  readonly user: string;
  /** Folders of this machine that it may read, by where it finds them. */
  readonly files: Readonly<Record<string, string>>;
  /** What it may write to, and how much. */
  readonly writable: Readonly<Record<string, string>>;
  /** What is asked of it, by who asks. */
  readonly asked: Readonly<Record<string, Asked>>;
}

/** Where engines listen, at `localhost`. */
export interface EnginePorts {
  readonly eventstore: number;
  readonly mongodb: number;
  readonly kafka: number;
}

/** What an operator decides, beside what the files of the repository say. */
export interface DeploymentNeeds {
  /** Where files lie that containers read. */
  readonly folder: string;
  readonly ports: EnginePorts;
  readonly settings: Readonly<Record<string, string>>;
  /** Those that are not made anew. */
  readonly secrets: Readonly<Record<string, string>>;
}

export interface Deployed {
  readonly apps: readonly AppContainer[];
  readonly jobs: readonly AppContainer[];
  /** Files in PEM of what engines show of themselves; null: they speak in clear. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
}
