import { Injectable } from '@nestjs/common';
import type { DirectoryLinkEvent } from '#apps/identity/src/domain/directory-link.decider';
import type { Recorded } from '#libs/event-sourcing/src/deciding/decider';
import { LogFollowing, type MemoryFollower } from '#libs/event-sourcing/src/following/memory-follower';
import { BoundedMap } from '#libs/platform/src/bounded-map';
import type { BackgroundComponent } from '#libs/platform/src/lifecycle';

/** How long an answer waits for what follows from it. */
const FOLLOWED_TIMEOUT_MS = 1_000;
/** What follows may be heard of before anybody waits for it. */
const MOST_HEARD = 10_000;

interface Waiting {
  readonly version: number;
  readonly resolve: () => void;
}

/** Hears from the log which changes of people users and memberships have followed: a product that is answered finds what it asked for done, where that takes no longer than a second. */
@Injectable()
export class FollowedPeople implements BackgroundComponent {
  readonly name = 'followed people';
  readonly stage = 'views';
  private readonly follower: MemoryFollower;
  private readonly heard = new BoundedMap<number>(MOST_HEARD);
  private readonly waiting = new Map<string, Set<Waiting>>();

  constructor(following: LogFollowing) {
    this.follower = following.remember({
      name: this.name,
      types: ['directory_link.changed', 'directory_link.ended'] satisfies DirectoryLinkEvent['type'][],
      pace: 'prompt',
      begin: () => following.reader.head(),
      handle: (events) => {
        for (const event of events as readonly Recorded<DirectoryLinkEvent>[]) this.hear(event);
      },
    });
  }

  start(): Promise<void> {
    return this.follower.start();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  /** Resolves once what follows from this version of a person's stream is recorded, and in any case after a second. */
  async reached(environment: string, id: string, version: number): Promise<void> {
    if ((this.heard.get(environment, id) ?? 0) >= version) return;
    const key = `${environment} ${id}`;
    const waiting = this.waiting.get(key) ?? new Set<Waiting>();
    this.waiting.set(key, waiting);
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(one);
        if (waiting.size === 0 && this.waiting.get(key) === waiting) this.waiting.delete(key);
        resolve();
      };
      const one: Waiting = { version, resolve: done };
      const timer = setTimeout(done, FOLLOWED_TIMEOUT_MS);
      waiting.add(one);
    });
  }

  private hear({ data, meta }: Recorded<DirectoryLinkEvent>): void {
    const { id, version } = data;
    this.heard.set(meta.environment, id, Math.max(version, this.heard.get(meta.environment, id) ?? 0));
    for (const { version: wanted, resolve } of [...(this.waiting.get(`${meta.environment} ${id}`) ?? [])]) if (wanted <= version) resolve();
  }
}
