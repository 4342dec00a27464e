import { Injectable } from '@nestjs/common';
import { MessageSettings } from '#libs/platform/src/config/settings';

/** The pages of the application that links lead to. They are built from settings alone: whoever sends a request says nothing of where its answer, or a mail, leads. */
@Injectable()
export class ApplicationLinks {
  constructor(private readonly settings: MessageSettings) {}

  passwordReset(token: string): string {
    return this.page('reset-password', { token });
  }

  invitation(token: string): string {
    return this.page('invite', { invitation_token: token });
  }

  private page(name: string, query: Readonly<Record<string, string>>): string {
    const base = (this.settings.APPLICATION_URL ?? '').replace(/\/+$/, '');
    return `${base}/${name}?${String(new URLSearchParams(query))}`;
  }
}
