import type { DynamicModule, Type } from '@nestjs/common';
import type { ServiceName } from '#libs/contracts/src/operation';
import type { Decider, Fact } from '#libs/event-sourcing/src/deciding/decider';
import type { DeclaredSealing } from '#libs/event-sourcing/src/sealing/declared-sealing';
import type { ViewElsewhere } from '#libs/event-sourcing/src/views/read-your-writes';
import type { View } from '#libs/event-sourcing/src/views/view';

/** An aggregate as a service declares it; of one whose commands another class carries out, the category alone. */
export type DeclaredDecider = Pick<Decider<never, Fact>, 'category' | 'upcasts' | 'writes' | 'hangsOn'> & DeclaredSealing;

/** A service that a process runs, as `service` puts it together from its features. */
export interface Service {
  readonly owner: ServiceName;
  /** Needs from the runtime: the ports and settings that its classes name. */
  readonly module: DynamicModule;
  readonly deciders: readonly DeclaredDecider[];
  /** Whether its streams are announced, for which its process speaks to the bus. */
  readonly isForwarded: boolean;
  /** Each of rows of its own, which only the view itself knows. */
  readonly views: readonly Pick<View<unknown>, 'name' | 'version'>[];
  /** Views of other services that its answers wait for. */
  readonly awaits?: readonly ViewElsewhere[];
}

/** What Nest puts together for an app. */
export function modulesOf({
  modules = [],
  services,
}: {
  readonly modules?: readonly Type[];
  readonly services: readonly Service[];
}): readonly (Type | DynamicModule)[] {
  return [...modules, ...services.map(({ module }) => module)];
}

/** The settings of a process, by their class. */
export interface SettingsOfProcess {
  of<Settings extends object>(type: new () => Settings): Settings;
}
