import { CreateEnvironmentKey } from '#libs/contracts/src/environments/operations';
import { SettableClock } from '#libs/testing/src/settable-clock';
import { Caller, givenSuite, type GivenSuite } from '#libs/testing/src/suite';

const NOBODY = '/user_management/users/user_01J0000000000000000000000A';
const NOTHING = '/user_management/organization_memberships/om_01J0000000000000000000000A';
const LIMITS = { RATE_LIMIT_USER_MANAGEMENT_READS: '3', RATE_LIMIT_USER_MANAGEMENT_WRITES: '2' };

describe('requests about users and memberships', () => {
  /** It stands at the beginning of a window. */
  let clock: SettableClock;
  let suite: GivenSuite;
  let sameEnvironment: Caller;
  let other: Caller;
  beforeAll(async () => {
    clock = new SettableClock(Date.now() - (Date.now() % 10_000));
    suite = await givenSuite({ variables: { ...LIMITS, RATE_LIMITS: 'on' }, clock });
    const { value } = await suite.call(CreateEnvironmentKey, { environment_name: 'development', name: 'second' });
    sameEnvironment = new Caller(() => suite.url, value);
    other = await suite.otherEnvironment();
  });
  beforeEach(() => pass(10_000));

  /** A gateway that has heard nothing of the log for so long answers nothing, until it hears of it again. */
  async function pass(milliseconds: number): Promise<void> {
    clock.forward(milliseconds);
    await suite.eventually('/organizations', { object: 'list' });
  }

  it('are counted for their environment, whatever they ask and whichever key they come with', async () => {
    await suite.get(NOBODY).expect(404);
    await sameEnvironment.get('/user_management/users').expect(200);
    await suite.get(NOTHING).expect(404);
    await sameEnvironment.get(NOBODY).expect(429);
    await suite.get('/user_management/users?limit=0').expect(429);
  });

  it('are told when to come back, and may come then', async () => {
    await pass(2_500);
    for (let reads = 0; reads < 3; reads++) await suite.get(NOBODY).expect(404);
    const { status, headers, body } = await suite.get(NOBODY);
    expect([status, body.code]).toEqual([429, 'rate_limit_exceeded']);
    expect(headers).toMatchObject({ 'retry-after': '8', 'ratelimit-limit': '3', 'ratelimit-remaining': '0', 'ratelimit-reset': '8' });
    await pass(7_500);
    await suite.get(NOBODY).expect(404);
  });

  it('are counted apart where they write', async () => {
    await suite.post('/user_management/users', { email: 'ada@acme.test' }).expect(201);
    await suite.put(NOBODY, { name: 'Nobody' }).expect(404);
    await suite.delete(NOTHING).expect(429);
    for (let reads = 0; reads < 3; reads++) await suite.get(NOBODY).expect(404);
  });

  it('leave other environments and other requests alone', async () => {
    for (let reads = 0; reads < 3; reads++) await suite.get(NOBODY).expect(404);
    await suite.get(NOBODY).expect(429);
    await other.get(NOBODY).expect(404);
    for (let reads = 0; reads < 5; reads++) await suite.get('/organizations').expect(200);
  });
});

it('limits no environment beside the keys, unless it is told to', async () => {
  const suite = await givenSuite({ variables: { RATE_LIMITS: 'on', RATE_LIMIT_USER_MANAGEMENT_READS: '', RATE_LIMIT_PER_SECOND: '10000' } });
  const answers = await Promise.all(Array.from({ length: 1_100 }, () => suite.get(NOBODY)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
});

it('counts nothing in development, unless it is told to', async () => {
  const suite = await givenSuite({ variables: { ...LIMITS, RATE_LIMIT_PER_SECOND: '1' } });
  for (let reads = 0; reads < 5; reads++) await suite.get(NOBODY).expect(404);
});
