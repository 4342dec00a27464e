import type { RecordedEvent } from '#libs/event-sourcing/src/log/event-store';
import type { Caller } from '#libs/testing/src/suite';
import { Chance } from '../chance.ts';
import { Customer } from './customer.ts';
import { NaiveAccess, type Way } from './naive-access.ts';

const OPERATIONS = 200;
/** How often several do something at once while a question is asked. */
const AT_ONCE = 0.15;
/** How many questions are asked as soon as it is done. */
const TOGETHER = 3;
/** How many of them are about what was just written: a replica that did not wait for the log would answer them as it was before. */
const TOUCHED = 0.6;

export interface Tally {
  questions: number;
  allowed: number;
  denied: number;
  lists: number;
}

interface Question {
  readonly text: string;
  /** Null where it was answered that something is not there. */
  readonly answer: () => Promise<unknown>;
  readonly expected: (access: NaiveAccess) => unknown;
}

/** The log of the environment, read on from where it was read before. */
export type Reader = () => Promise<readonly RecordedEvent[]>;

/**
 * 200 operations at random in an organization of its own, with questions in between. Every answer has to be what the log says; that of a question asked while
 * others write, what it says at some point between the question and the answer.
 * @throws Error with the seed at the first answer that is not
 */
export async function live(seed: number, caller: Caller, read: Reader, tally: Tally): Promise<void> {
  const chance = new Chance(seed);
  const customer = new Customer(caller, chance);
  const questions = new Questions(caller, customer, chance, tally);
  try {
    await customer.begin();
    for (let done = 0; done < OPERATIONS;) {
      if (chance.is(AT_ONCE)) {
        const before = (await read()).length;
        const question = questions.next();
        const [answer] = await Promise.all([question.answer(), customer.actAtOnce(3)]);
        demandOneOf(question, answer, await read(), before);
        done += 3;
      } else {
        await customer.act();
        done += 1;
      }
      await askAll(questions, read);
    }
    await customer.deleteOrganization();
    await askAll(questions, read);
  } catch (error) {
    throw new Error(`History ${seed}: ${(error as Error).message}`, { cause: error });
  }
}

/** Questions that nobody writes beside: only what follows by itself from what was done is recorded meanwhile, and changes no answer. */
async function askAll(questions: Questions, read: Reader): Promise<void> {
  const asked = Array.from({ length: TOGETHER }, () => questions.next());
  const answers = await Promise.all(asked.map(({ answer }) => answer()));
  const log = await read();
  for (const [index, question] of asked.entries()) demandOneOf(question, answers[index], log, log.length);
}

function demandOneOf({ text, expected }: Question, answer: unknown, log: readonly RecordedEvent[], from: number): void {
  const states: unknown[] = [];
  for (let length = from; length <= log.length; length++) states.push(expected(new NaiveAccess(log.slice(0, length))));
  if (states.some((state) => JSON.stringify(state) === JSON.stringify(answer)) || isBetween(answer, states)) return;
  const possible = [...new Set(states.map((state) => JSON.stringify(state)))].join(' or ');
  throw new Error(`${text} was answered ${JSON.stringify(answer)} instead of ${possible}, after ${log.length} records.`);
}

/** What is listed is looked up after it was found, and pages are of different moments: nothing is listed that never was to be, and nothing left out that always was. */
function isBetween(answer: unknown, states: readonly unknown[]): boolean {
  const lists = states.filter((state): state is readonly string[] => Array.isArray(state));
  if (states.length === 1 || !Array.isArray(answer) || lists.length === 0) return false;
  const listed = new Set(answer as readonly string[]);
  const always = lists[0]!.filter((id) => lists.length === states.length && lists.every((list) => list.includes(id)));
  return always.every((id) => listed.has(id)) && [...listed].every((id) => lists.some((list) => list.includes(id)));
}

/** What may be asked, mostly about what has been granted some time. */
class Questions {
  constructor(
    private readonly caller: Caller,
    private readonly customer: Customer,
    private readonly chance: Chance,
    private readonly tally: Tally,
  ) {}

  next(): Question {
    return this.chance.weighted<() => Question>([
      [10, () => this.check()],
      [1, () => this.children()],
      [1, () => this.holders()],
      [1, () => this.permissions()],
    ])();
  }

  private check(): Question {
    const { membership, resource } = this.subject();
    const permission = this.customer.permission();
    return {
      text: `Whether ${membership} may ${permission} ${resource}`,
      answer: async () => {
        const { status, body } = await this.caller.post(`/authorization/organization_memberships/${membership}/check`, {
          permission_slug: permission,
          resource_id: resource,
        });
        if (status === 404) return null;
        const { authorized } = body as { readonly authorized: boolean };
        this.tally.questions++;
        this.tally[authorized ? 'allowed' : 'denied']++;
        return authorized;
      },
      expected: (access) => access.allows(membership, permission, resource),
    };
  }

  private children(): Question {
    const { membership, resource } = this.subject();
    const permission = this.customer.permission();
    const path = `/authorization/organization_memberships/${membership}/resources?permission_slug=${permission}&parent_resource_id=${resource}`;
    return {
      text: `What ${membership} may ${permission} under ${resource}`,
      answer: () => this.idsOf(path),
      expected: (access) => sorted(access.children(membership, permission, resource)),
    };
  }

  private holders(): Question {
    const { resource } = this.subject();
    const permission = this.customer.permission();
    const way = this.chance.weighted<Way | undefined>([
      [2, undefined],
      [1, 'direct'],
      [1, 'indirect'],
    ]);
    const path = `/authorization/resources/${resource}/organization_memberships?permission_slug=${permission}${way === undefined ? '' : `&assignment=${way}`}`;
    return {
      text: `Who may ${permission} ${resource} (${way ?? 'in any way'})`,
      answer: () => this.idsOf(path),
      expected: (access) => sorted(access.holders(permission, resource, way)),
    };
  }

  private permissions(): Question {
    const { membership, resource } = this.subject();
    return {
      text: `What ${membership} may do with ${resource}`,
      answer: () => this.idsOf(`/authorization/organization_memberships/${membership}/resources/${resource}/permissions?`, 'slug'),
      expected: (access) => sorted(access.permissions(membership, resource)),
    };
  }

  /** All pages, of a size that mostly takes several. */
  private async idsOf(path: string, key: 'id' | 'slug' = 'id'): Promise<readonly string[] | null> {
    const ids: string[] = [];
    for (let after: string | null = ''; after !== null;) {
      const { status, body } = await this.caller.get(`${path}&limit=3${after === '' ? '' : `&after=${after}`}`);
      if (status === 404) return null;
      const page = body as { readonly data: readonly Record<'id' | 'slug', string>[]; readonly list_metadata: { readonly after: string | null } };
      ids.push(...page.data.map((item) => item[key]));
      after = page.list_metadata.after;
    }
    this.tally.lists++;
    return sorted(ids);
  }

  private subject(): { readonly membership: string; readonly resource: string } {
    const { customer, chance } = this;
    const { memberships, resources, grants, members } = customer.known;
    const touched = chance.is(TOUCHED) ? chance.of(customer.known.touched()) : undefined;
    const granted = touched ?? (chance.is(0.9) ? customer.one(grants) : undefined);
    const member = granted?.membership ?? customer.one(members.filter(({ group }) => group === granted?.group))?.membership;
    return {
      membership: member ?? customer.one(memberships) ?? memberships[0]!,
      resource: granted !== undefined && chance.is(0.85) ? granted.resource : customer.one(resources)!.id,
    };
  }
}

function sorted(ids: readonly string[] | null): readonly string[] | null {
  return ids === null ? null : [...ids].sort();
}
