import 'reflect-metadata';
import { StartRefused } from '../start-refused.ts';
import { oneOf, type Kind } from './kinds.ts';

export type Mode = 'development' | 'production';
/** Defaults of other settings depend on it, so it is read with every class. */
export const MODES: Kind<Mode> = oneOf('development', 'production');
export const DEFAULT_MODE: Mode = 'development';

interface SettingOptions {
  /** One sentence for the table. */
  readonly doc: string;
  /** As a person would write it; absent: the value is null where it is not set. */
  readonly default?: string | Readonly<Record<Mode, string>>;
  /** Must be set in this mode. */
  readonly requiredIn?: Mode;
  /** Never printed. */
  readonly secret?: true;
}

/** What a setting may be, where it depends on the mode. */
type KindByMode<Value> = Readonly<Record<Mode, Kind<Value>>>;

/** What `@Setting` recorded of one property. */
export interface SettingField extends SettingOptions {
  readonly name: string;
  readonly kind: Kind<unknown> | KindByMode<unknown>;
}

type SettingsClass<Settings = unknown> = new () => Settings;
/** Variables by name, as the process received them. */
export type Variables = Readonly<Record<string, string | undefined>>;

const SETTINGS = Symbol('gatehouse:settings');

/** Declares a property as a setting: its name is the name of the environment variable. */
export function Setting<Value>(kind: Kind<Value> | KindByMode<Value>, options: SettingOptions) {
  return <Name extends string>(prototype: Readonly<Record<Name, Value | null>>, name: Name): void => {
    const fields = (Reflect.getOwnMetadata(SETTINGS, prototype) as SettingField[] | undefined) ?? [];
    fields.push({ ...options, name, kind });
    Reflect.defineMetadata(SETTINGS, fields, prototype);
  };
}

const MODE_FIELD: SettingField = { name: 'GATEHOUSE_MODE', kind: MODES, default: DEFAULT_MODE, doc: '' };

/** The settings of a class, in order of declaration. */
export function settingsOf(type: SettingsClass): readonly SettingField[] {
  return (Reflect.getOwnMetadata(SETTINGS, type.prototype as object) as SettingField[] | undefined) ?? [];
}

/** Settings as far as they can be read: what is refused has its default. */
interface TriedSettings<Settings> {
  readonly settings: Settings;
  /** By the name of the setting: its value, unless it is secret, and what is allowed. */
  readonly refusals: ReadonlyMap<string, string>;
}

/** Reads and freezes one class of settings. @throws StartRefused naming each setting that is wrong, its value and what is allowed */
export function readSettings<Settings extends object>(type: SettingsClass<Settings>, variables: Variables): Settings {
  const { settings, refusals } = triedSettings(type, variables);
  if (refusals.size > 0) throw new StartRefused([...refusals.values()].join(' '));
  return settings;
}

/** The same, to go on with the rest where something is wrong. */
export function triedSettings<Settings extends object>(type: SettingsClass<Settings>, variables: Variables): TriedSettings<Settings> {
  const refusals = new Map<string, string>();
  const tried = (field: SettingField, mode: Mode): unknown => {
    try {
      return valueOf(field, mode, variables);
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      refusals.set(field.name, error.message);
      return defaultOf(field, mode);
    }
  };
  const mode = tried(MODE_FIELD, DEFAULT_MODE) as Mode;
  const settings = new type() as Record<string, unknown>;
  for (const field of settingsOf(type)) settings[field.name] = tried(field, mode);
  return { settings: Object.freeze(settings) as Settings, refusals };
}

/** @throws StartRefused for a mode that is none */
export function modeOf(variables: Variables): Mode {
  return valueOf(MODE_FIELD, DEFAULT_MODE, variables) as Mode;
}

/** Names that look like ours and are nobody's: usually misspelt. */
export function unknownSettings(types: readonly SettingsClass[], variables: Variables): readonly string[] {
  const known = new Set(types.flatMap((type) => settingsOf(type).map((field) => field.name)));
  return Object.keys(variables).filter((name) => name.startsWith('GATEHOUSE_') && !known.has(name));
}

export function kindOf({ kind }: SettingField, mode: Mode): Kind<unknown> {
  return 'read' in kind ? kind : kind[mode];
}

/** The only reader of a variable. White space around a value is cut off first: a file of variables with Windows line ends leaves a `\r` behind each. */
function valueOf(field: SettingField, mode: Mode, variables: Variables): unknown {
  const given = variables[field.name]?.trim();
  const kind = kindOf(field, mode);
  if (given === undefined || given === '') {
    if (field.requiredIn === mode) throw new StartRefused(`${field.name} is not set, and ${mode} mode needs it: it must be ${kind.allowed}.`);
    return defaultOf(field, mode);
  }
  const value = kind.read(given);
  if (value === undefined)
    throw new StartRefused(`${field.name} is ${field.secret ? 'set to something else' : JSON.stringify(given)}, but must be ${kind.allowed}.`);
  return value;
}

function defaultOf(field: SettingField, mode: Mode): unknown {
  const text = typeof field.default === 'object' ? field.default[mode] : field.default;
  return text === undefined ? null : (kindOf(field, mode).read(text) ?? null);
}
