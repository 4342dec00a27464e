import type { Owner } from '#libs/contracts/src/operation';
import type { ViewElsewhere } from '#libs/event-sourcing/src/views/awaited-views';
import type { View } from '#libs/event-sourcing/src/views/view';

/** A service that a process runs. */
export interface Service {
  readonly owner: Owner;
  /** Each of rows of its own, which only the view itself knows. */
  readonly views: readonly Pick<View<unknown>, 'name' | 'version'>[];
  /** Views of other services that its answers wait for. */
  readonly awaits?: readonly ViewElsewhere[];
}

/** The settings of a process, by their class. */
export interface SettingsOfProcess {
  of<Settings extends object>(type: new () => Settings): Settings;
}
