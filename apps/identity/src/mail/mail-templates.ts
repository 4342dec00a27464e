import { escapedHtml } from '#libs/platform/src/escaped-html';

/** What can be sent. */
export type MailKind = 'magic_auth' | 'email_verification' | 'radar_challenge' | 'password_reset' | 'invitation';

/** What of an invitation is told; null: nothing that has a name. */
interface Invited {
  readonly organization: string | null;
  readonly inviter: string | null;
}

interface Texts {
  readonly subject: (name: string, invited: Invited) => string;
  readonly lead: (name: string, invited: Invited) => string;
  /** What stands on the link. */
  readonly action?: string;
  /** `time`: minutes; of an invitation, days. */
  readonly ending: (time: number) => string;
}

const UNWANTED_EN = 'If you did not ask for this, you can ignore this message.';
const UNWANTED_DE = 'Falls Sie das nicht angefordert haben, können Sie diese Nachricht ignorieren.';

/** By language; English has everything. */
const LANGUAGES: { readonly en: Readonly<Record<MailKind, Texts>> } & Readonly<Record<string, Partial<Readonly<Record<MailKind, Texts>>>>> = {
  en: {
    magic_auth: {
      subject: (name) => `Your code for ${name}`,
      lead: (name) => `Sign in to ${name} with this code:`,
      ending: (minutes) => `It works once, for ${minutes} minutes. Never tell it to anybody. ${UNWANTED_EN}`,
    },
    email_verification: {
      subject: (name) => `Verify your email address for ${name}`,
      lead: (name) => `Verify your email address for ${name} with this code:`,
      ending: (minutes) => `It works once, for ${minutes} minutes. Never tell it to anybody. ${UNWANTED_EN}`,
    },
    radar_challenge: {
      subject: (name) => `Confirm that you are signing in to ${name}`,
      lead: (name) => `Somebody, probably you, is signing in to ${name} in an unusual way. Confirm it with this code:`,
      ending: (minutes) =>
        `It works once, for ${minutes} minutes. Never tell it to anybody. If this is not you, somebody else knows how you sign in: set a new password.`,
    },
    password_reset: {
      subject: (name) => `Set a new password for ${name}`,
      lead: (name) => `Somebody, probably you, wants to set a new password for ${name}.`,
      action: 'Set a new password',
      ending: (minutes) => `The link works once, for ${minutes} minutes. ${UNWANTED_EN}`,
    },
    invitation: {
      subject: (name, { organization }) => (organization === null ? `You are invited to ${name}` : `You are invited to ${organization} on ${name}`),
      lead: (name, { organization, inviter }) => `${inviter ?? 'Somebody'} invites you to ${organization === null ? name : `join ${organization} on ${name}`}.`,
      action: 'Accept the invitation',
      ending: (days) => `The link works once, for ${days === 1 ? 'a day' : `${days} days`}. If you did not expect this, you can ignore this message.`,
    },
  },
  de: {
    magic_auth: {
      subject: (name) => `Ihr Code für ${name}`,
      lead: (name) => `Melden Sie sich bei ${name} mit diesem Code an:`,
      ending: (minutes) => `Er gilt einmal, ${minutes} Minuten lang. Geben Sie ihn niemandem weiter. ${UNWANTED_DE}`,
    },
    email_verification: {
      subject: (name) => `Bestätigen Sie Ihre E-Mail-Adresse für ${name}`,
      lead: (name) => `Bestätigen Sie Ihre E-Mail-Adresse für ${name} mit diesem Code:`,
      ending: (minutes) => `Er gilt einmal, ${minutes} Minuten lang. Geben Sie ihn niemandem weiter. ${UNWANTED_DE}`,
    },
    radar_challenge: {
      subject: (name) => `Bestätigen Sie Ihre Anmeldung bei ${name}`,
      lead: (name) => `Jemand, vermutlich Sie, meldet sich auf ungewöhnliche Weise bei ${name} an. Bestätigen Sie das mit diesem Code:`,
      ending: (minutes) =>
        `Er gilt einmal, ${minutes} Minuten lang. Geben Sie ihn niemandem weiter. Falls Sie das nicht sind, kennt jemand Ihre Zugangsdaten: Setzen Sie ein neues Passwort.`,
    },
    password_reset: {
      subject: (name) => `Neues Passwort für ${name}`,
      lead: (name) => `Jemand, vermutlich Sie, möchte ein neues Passwort für ${name} setzen.`,
      action: 'Neues Passwort setzen',
      ending: (minutes) => `Der Link gilt einmal, ${minutes} Minuten lang. ${UNWANTED_DE}`,
    },
    invitation: {
      subject: (name, { organization }) => (organization === null ? `Einladung zu ${name}` : `Einladung zu ${organization} bei ${name}`),
      lead: (name, { organization, inviter }) =>
        `${inviter ?? 'Jemand'} lädt Sie ein, ${organization === null ? `${name} zu nutzen` : `${organization} bei ${name} beizutreten`}.`,
      action: 'Einladung annehmen',
      ending: (days) =>
        `Der Link gilt einmal, ${days === 1 ? 'einen Tag' : `${days} Tage`} lang. Falls Sie keine Einladung erwartet haben, können Sie diese Nachricht ignorieren.`,
    },
  },
};

const NOBODY: Invited = { organization: null, inviter: null };

/** A code to type, or a link to follow. */
type Secret = { readonly code: string } | { readonly link: string };

/** What is sent to whom. */
export interface Addressed {
  readonly to: string;
  readonly secret: Secret;
  /** How long it is of use: minutes; of an invitation, days. */
  readonly time: number;
  readonly invited?: Invited;
  /** A BCP 47 tag, or null. */
  readonly locale: string | null;
}

interface Letter extends Omit<Addressed, 'to'> {
  readonly kind: MailKind;
  readonly brand: { readonly name: string; readonly logo_url: string | null; readonly color: string | null };
}

export function letterOf({ kind, secret, time, locale, brand: { name, ...brand }, invited: { organization, inviter } = NOBODY }: Letter): {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
} {
  const wanted = locale?.split('-')[0]?.toLowerCase() ?? 'en';
  const language = Object.hasOwn(LANGUAGES, wanted) && LANGUAGES[wanted]![kind] !== undefined ? wanted : 'en';
  const texts = LANGUAGES[language]![kind] ?? LANGUAGES.en[kind];
  const shown = 'code' in secret ? secret.code : secret.link;
  const invited = { organization: organization && harmless(organization), inviter: inviter && harmless(inviter) };
  const [subject, first, last] = [texts.subject(name, invited), texts.lead(name, invited), texts.ending(time)];
  const { action } = texts;
  const text = `${first}\n\n${shown}\n\n${last}\n`;
  const color = brand.color ?? '#1f4b99';
  const logo = brand.logo_url === null ? '' : `<p><img src="${escapedHtml(brand.logo_url)}" alt="${escapedHtml(name)}" height="40"></p>`;
  const middle =
    'code' in secret
      ? `<p style="font-size:32px;letter-spacing:6px;font-weight:bold;color:${color}">${escapedHtml(shown)}</p>`
      : `<p><a href="${escapedHtml(shown)}" style="background:${color};color:#ffffff;padding:12px 20px;border-radius:6px;text-decoration:none">${escapedHtml(action ?? shown)}</a></p><p style="word-break:break-all;color:#666666">${escapedHtml(shown)}</p>`;
  const html = `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><title>${escapedHtml(subject)}</title></head><body style="font-family:sans-serif;color:#222222;max-width:560px;margin:24px auto">${logo}<p>${escapedHtml(first)}</p>${middle}<p style="color:#666666">${escapedHtml(last)}</p></body></html>`;
  return { subject, text, html };
}

const LONGEST_NAME = 100;
/** Looks like a full stop, and is none to a program that looks for addresses in texts. */
const ONE_DOT_LEADER = '\u2024';

/**
 * People choose their names: one that has lines would write the message, and one that is an address would be shown as a link to it by programs that read mail, and send
 * whoever is invited wherever it likes.
 */
function harmless(name: string): string {
  const characters = [
    ...name
      .replace(/\p{Cf}+/gu, '')
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
  ];
  const inOneLine = characters.length <= LONGEST_NAME ? characters.join('') : `${characters.slice(0, LONGEST_NAME).join('')}…`;
  // What browsers take for a full stop (UTS 46) as well; what stands before a colon may be a scheme.
  return inOneLine.replace(/[.\u3002\uff0e\uff61](?=\S)/gu, ONE_DOT_LEADER).replace(/[:@\uff1a\uff20](?=\S)/gu, '$& ');
}
