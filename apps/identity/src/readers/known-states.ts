import { Injectable } from '@nestjs/common';
import { Repository } from '#libs/event-sourcing/src/deciding/repository';
import { LogFollowing } from '#libs/event-sourcing/src/following/memory-follower';
import { StateCache } from '#libs/event-sourcing/src/following/state-cache';
import { Clock } from '#libs/platform/src/clock';
import { authenticationPolicyDecider } from '../domain/authentication-policy.decider.ts';
import { environmentSettingsDecider } from '../domain/environment-settings.decider.ts';
import { environmentDecider } from '../domain/environment.decider.ts';
import { jwtTemplateDecider } from '../domain/jwt-template.decider.ts';
import { tokenKeysDecider } from '../domain/token-keys.decider.ts';

/** What sign-in asks for with every request, in the memory of this process. */
@Injectable()
export class KnownStates extends StateCache {
  constructor(following: LogFollowing, repository: Repository, clock: Clock) {
    super('what sign-in goes by', [environmentDecider, environmentSettingsDecider, authenticationPolicyDecider, jwtTemplateDecider, tokenKeysDecider], {
      following,
      repository,
      clock,
    });
  }
}
