import { Module, type OnModuleInit, type Provider, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { ServiceName } from '#libs/contracts/src/operation';
import type { Decider, Fact } from '#libs/event-sourcing/src/deciding/decider';
import { Deletions, deletionsView } from '#libs/event-sourcing/src/deciding/deletions';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { Forwarders } from '#libs/event-sourcing/src/following/forwarder';
import { type KeptStamp, stampEnds } from '#libs/event-sourcing/src/following/stamp-ends';
import { Reactions, type Reaction } from '#libs/event-sourcing/src/following/reaction';
import { ShownSecrets } from '#libs/event-sourcing/src/sealing/shown-secrets';
import type { ViewElsewhere } from '#libs/event-sourcing/src/views/read-your-writes';
import { primariesOf, type View } from '#libs/event-sourcing/src/views/view';
import { Lifecycle, type BackgroundComponent } from '#libs/platform/src/lifecycle';
import { ReadModels } from '#libs/read-models/src/read-models';
import { Stamps } from '#libs/read-models/src/stamps';
import type { DeclaredDecider, Service } from './service.ts';

/** What a folder of a service declares. Everything that the process has to know of it derives from this. */
export interface Feature {
  /** Their streams are announced, their shapes are read by every process, their stored examples are kept, and what hangs on something ends with it. */
  readonly deciders: readonly DeclaredDecider[];
  readonly views: readonly Pick<View<unknown>, 'name' | 'version'>[];
  /** Use cases and what they need, built by Nest. */
  readonly providers: readonly Provider[];
  /** Followed in the order of the log, each from where it came to; built by Nest like the providers. */
  readonly reactions: readonly Type<Reaction>[];
  /** What works beside requests for as long as the process runs; built by Nest like the providers. */
  readonly backgroundComponents: readonly Type<BackgroundComponent>[];
  /** Facts by which callers take something away although their type does not end in `.deleted`: a repeated command finds that it did so. */
  readonly removals: readonly string[];
  /** Views of the service that tell which aggregates of another one live, by their category: where something here hangs on those, and is to be met if it begins behind their end. */
  readonly parents: Readonly<Record<string, Pick<View<unknown>, 'name' | 'version'>>>;
  /** Times that are kept of what the service decides on; whoever notices a use records it. */
  readonly stamps: readonly KeptStamp[];
}

/** A feature folder of a service. */
export function feature(declared: Partial<Feature>): Feature {
  return { deciders: [], views: [], providers: [], reactions: [], backgroundComponents: [], removals: [], parents: {}, stamps: [], ...declared };
}

interface Options {
  /** Views of other services that its answers wait for. */
  readonly awaits?: readonly ViewElsewhere[];
  /** False where nobody outside is told of its streams. Default: true. */
  readonly isForwarded?: boolean;
}

/** A service, put together from its features. */
export function service(owner: ServiceName, features: readonly Feature[], { awaits = [], isForwarded = true }: Options = {}): Service {
  const deciders = features.flatMap((one) => one.deciders);
  const views = features.flatMap((one) => one.views);
  const primaries = primariesOf(views);
  const deletions = deletionsView(owner, [...[...primaries.values()].flatMap(deletedTypes), ...features.flatMap((one) => one.removals)]);
  const parents = features.flatMap((one) => Object.entries(one.parents));
  const living = new Map([...primaries, ...(parents as unknown as typeof primaries)]);
  const reactions = features.flatMap((one) => one.reactions);
  const backgroundComponents = features.flatMap((one) => one.backgroundComponents);
  const stamps = features.flatMap((one) => one.stamps);

  @Module({
    providers: [
      ...features.flatMap((one) => one.providers),
      ...reactions,
      ...backgroundComponents,
      ShownSecrets,
      { provide: Deletions, useFactory: (readModels: ReadModels) => new Deletions(readModels, deletions), inject: [ReadModels] },
    ],
  })
  class ServiceModule implements OnModuleInit {
    constructor(private readonly moduleRef: ModuleRef) {}

    onModuleInit(): void {
      const categories = deciders.map(({ category }) => category);
      if (isForwarded) this.get(Forwarders).add({ service: owner, categories });
      const cascade = this.get(Cascade);
      for (const name of new Set(deciders.flatMap(({ hangsOn }) => hangsOn?.reaction ?? []))) {
        const hanging = deciders.filter(({ hangsOn }) => hangsOn?.reaction === name);
        this.get(Reactions).add(cascade.reactionOf(hanging as unknown as readonly Decider<unknown, Fact>[], living));
      }
      for (const reaction of reactions) this.get(Reactions).add(this.get(reaction));
      for (const kept of stamps) this.get(Reactions).add(stampEnds(kept, this.get(Stamps)));
      for (const component of backgroundComponents) this.get(Lifecycle).add(this.get(component));
    }

    private get<Provided>(type: abstract new (...args: never[]) => Provided): Provided {
      return this.moduleRef.get<Provided>(type, { strict: false });
    }
  }
  return { owner, module: { module: ServiceModule }, deciders, isForwarded, views: [...views, deletions], awaits };
}

function deletedTypes({ handles }: { readonly handles: readonly string[] }): readonly string[] {
  return handles.filter((type) => type.endsWith('.deleted'));
}
