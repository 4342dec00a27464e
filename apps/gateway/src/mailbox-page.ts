import { Injectable } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ListMailboxMessages, type MailboxMessage } from '#libs/contracts/src/mailbox/operations';
import { OperationTransport } from '#libs/messaging/src/operation-transport';
import { Clock } from '#libs/platform/src/clock';
import { escapedHtml } from '#libs/platform/src/escaped-html';
import { SYSTEM_ENVIRONMENT } from '#libs/platform/src/request-context';
import { systemContext } from '#libs/platform/src/system-context';
import { noSuchPath, refusal, send } from './http-answer.ts';

const PAGE_POLICY = "default-src 'none'; style-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** Of a message itself: it is shown in a frame, and may do nothing there. */
const MESSAGE_POLICY =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

const STYLE = `body{font:16px/1.5 sans-serif;max-width:880px;margin:32px auto;padding:0 16px;color:#222}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:6px 10px;border-bottom:1px solid #ddd}
pre{background:#f4f4f4;padding:12px;white-space:pre-wrap;word-break:break-word}
code{font-size:28px;letter-spacing:4px;user-select:all}iframe{width:100%;height:420px;border:1px solid #ddd}`;

/** A name that leads here could be one of a stranger's page, which would read what this answers. */
const LOCAL = /^(localhost|[\w-]+\.localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:.]+\])(:\d+)?$/i;

/** The mailbox of development mode, for people and for tests: whoever reaches the address of this process reads it. */
@Injectable()
export class MailboxPage {
  constructor(
    private readonly transport: OperationTransport,
    private readonly clock: Clock,
  ) {}

  mount(scope: FastifyInstance): void {
    scope.get(
      '/dev/mailbox',
      this.answer((messages) => html(listOf(messages))),
    );
    scope.get(
      '/dev/mailbox/style.css',
      this.answer(() => ({ type: 'text/css; charset=utf-8', policy: PAGE_POLICY, body: STYLE })),
    );
    scope.get(
      '/dev/mailbox/messages',
      this.answer((messages) => ({ type: 'application/json; charset=utf-8', policy: PAGE_POLICY, body: JSON.stringify({ data: messages }) })),
    );
    scope.get(
      '/dev/mailbox/messages/:id',
      this.answer((messages, id) => withId(messages, id, (message) => html(pageOf(message)))),
    );
    scope.get(
      '/dev/mailbox/messages/:id/html',
      this.answer((messages, id) => withId(messages, id, (message) => ({ type: 'text/html; charset=utf-8', policy: MESSAGE_POLICY, body: message.html }))),
    );
  }

  private answer(of: (messages: readonly MailboxMessage[], id: string) => Shown | null) {
    return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const operation = Object.assign(new ListMailboxMessages(), { context: systemContext(SYSTEM_ENVIRONMENT, this.clock.now()) });
      const isLocal = LOCAL.test(request.headers.host ?? '') && request.headers['sec-fetch-site'] !== 'cross-site';
      const shown = isLocal ? of(await this.transport.call(operation), (request.params as { readonly id?: string }).id ?? '') : null;
      if (shown === null) return send(reply, refusal(noSuchPath())!);
      return reply
        .header('Content-Type', shown.type)
        .header('Content-Security-Policy', shown.policy)
        .header('X-Content-Type-Options', 'nosniff')
        .header('Referrer-Policy', 'no-referrer')
        .header('Cache-Control', 'no-store')
        .send(shown.body);
    };
  }
}

interface Shown {
  readonly type: string;
  readonly policy: string;
  readonly body: string;
}

function withId(messages: readonly MailboxMessage[], id: string, shown: (message: MailboxMessage) => Shown): Shown | null {
  const message = messages.find((each) => each.id === id);
  return message === undefined ? null : shown(message);
}

function html(body: string): Shown {
  const head =
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Mailbox</title><link rel="stylesheet" href="/dev/mailbox/style.css">';
  return { type: 'text/html; charset=utf-8', policy: PAGE_POLICY, body: `<!doctype html><html lang="en"><head>${head}</head><body>${body}</body></html>` };
}

function listOf(messages: readonly MailboxMessage[]): string {
  const row = ({ id, to, subject, at }: MailboxMessage) =>
    `<tr><td>${escapedHtml(at)}</td><td>${escapedHtml(to)}</td><td><a href="/dev/mailbox/messages/${encodeURIComponent(id)}">${escapedHtml(subject)}</a></td></tr>`;
  const rows = messages.map(row).join('');
  const table = `<table><thead><tr><th>At</th><th>To</th><th>Subject</th></tr></thead><tbody>${rows}</tbody></table>`;
  return `<h1>Mailbox</h1>${messages.length === 0 ? '<p>No message yet. With SMTP_URL set, mail is sent and not shown here.</p>' : table}`;
}

/** The code stands by itself, to be selected with one click. */
function pageOf({ id, to, from, subject, text }: MailboxMessage): string {
  const code = /^\d{6}$/m.exec(text)?.[0];
  const copied = code === undefined ? '' : `<p><code>${code}</code></p>`;
  const frame = `<iframe sandbox title="Message" src="/dev/mailbox/messages/${encodeURIComponent(id)}/html"></iframe>`;
  return `<p><a href="/dev/mailbox">Mailbox</a></p><h1>${escapedHtml(subject)}</h1><p>From ${escapedHtml(from)}<br>To ${escapedHtml(to)}</p>${copied}${frame}<pre>${escapedHtml(text)}</pre>`;
}
