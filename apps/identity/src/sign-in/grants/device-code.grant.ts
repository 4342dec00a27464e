import { Injectable } from '@nestjs/common';
import { DeviceCodes } from '../device-codes.ts';
import type { SignInClient } from '../sign-in-client.ts';
import { SignInPeople } from '../sign-in-people.ts';
import { invalidGrant } from '../sign-in-refusals.ts';
import type { Given, Grant, Proof } from './grant.ts';

/** The code of a device whose user signs in on another one. */
@Injectable()
export class DeviceCodeGrant implements Grant<'device_code'> {
  readonly type = 'urn:ietf:params:oauth:grant-type:device_code';
  readonly needs = ['device_code'] as const;
  readonly needsSecret = false;
  readonly isOAuth = true;

  constructor(
    private readonly codes: DeviceCodes,
    private readonly people: SignInPeople,
  ) {}

  /** @throws DomainError as `DeviceCodes.require` */
  async prove({ context, device_code }: Given<'device_code'>, client: SignInClient): Promise<Proof> {
    const { session_id: sessionId, user_id, chosen } = await this.codes.require(context, client.id, device_code);
    const user = await this.people.withId(context.environment, user_id);
    if (user === null) throw invalidGrant();
    return { sessionId, user, factor: null, chosen, isChallenged: false, holdsFactor: true, token: null };
  }
}
