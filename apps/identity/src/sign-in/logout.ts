import { Injectable } from '@nestjs/common';
import { Handles } from '#libs/contracts/src/handles';
import type { Redirection } from '#libs/contracts/src/redirection';
import { FindSessionEnvironment, LogOut } from '#libs/contracts/src/sessions/operations';
import type { SessionEnvironment } from '#libs/contracts/src/sessions/session';
import { tableOf } from '#libs/event-sourcing/src/views/view';
import { Clock } from '#libs/platform/src/clock';
import { DomainError, invalidField } from '#libs/platform/src/domain-error';
import { SYSTEM_ENVIRONMENT, type RequestContext } from '#libs/platform/src/request-context';
import { ReadModels, type Table } from '#libs/read-models/src/read-models';
import { EnvironmentSettingsReader } from '../readers/environment-settings-reader.ts';
import { signOutAddressesView, type SignOutAddresses } from '../views/sign-out-addresses.view.ts';
import { RefreshFamilies } from './refresh-families.ts';
import { Sessions } from './sessions.ts';

/** Somebody signs out, in a browser that knows the session and nothing else. */
@Injectable()
export class Logout {
  private readonly addresses: Table<SignOutAddresses>;

  constructor(
    private readonly sessions: Sessions,
    private readonly families: RefreshFamilies,
    private readonly settings: EnvironmentSettingsReader,
    private readonly clock: Clock,
    readModels: ReadModels,
  ) {
    this.addresses = readModels.table(tableOf(signOutAddressesView));
  }

  @Handles(FindSessionEnvironment)
  async find({ context, session_id, return_to }: FindSessionEnvironment): Promise<SessionEnvironment> {
    const environment_id = (await this.families.environmentOf(session_id)) ?? (await this.environmentListing(context, return_to));
    if (environment_id === null) throw noSuchSession();
    return { environment_id };
  }

  /** Nothing ends where the browser could not go on: whoever set it up wrong sees it at once. */
  @Handles(LogOut)
  async logOut({ context, session_id, return_to }: LogOut): Promise<Redirection> {
    if (!(await this.isGoingOn(context.environment, session_id))) {
      if (return_to === undefined || (await this.environmentListing(context, return_to)) === null) throw noSuchSession();
      return { location: return_to };
    }
    const { sign_out_uris, login_uri } = await this.settings.settings(context);
    const location = return_to ?? sign_out_uris[0] ?? login_uri;
    if (location === null) throw invalidField('required', 'return_to', 'return_to is required: the settings name no address to go on to.');
    if (return_to !== undefined && !sign_out_uris.includes(return_to))
      throw invalidField('not_listed', 'return_to', 'return_to must be one of the sign_out_uris of the settings.');
    await this.sessions.end(context, session_id, 'signed_out');
    return { location };
  }

  /** Whoever signs out once more, or too late, goes on as at first. Where the session was is asked of nothing, so that one that never was is answered alike. */
  private async environmentListing({ deadline }: RequestContext, address: string | undefined): Promise<string | null> {
    if (address === undefined) return null;
    return (await this.addresses.findBy({ environment: SYSTEM_ENVIRONMENT, deadline }, { index: 'address', values: [address] }))?.id ?? null;
  }

  private async isGoingOn(environment: string, id: string): Promise<boolean> {
    const [state, idleUntil] = await Promise.all([this.sessions.state(environment, id), this.families.idleUntil(environment, id)]);
    const now = this.clock.now();
    return state?.object === 'session' && Date.parse(state.expires_at) > now && idleUntil !== null && idleUntil > now;
  }
}

/** Of one that has ended nobody learns that it ever was. */
function noSuchSession(): DomainError {
  return new DomainError('not-found', 'session_not_found', 'There is no such session, or it has ended.');
}
