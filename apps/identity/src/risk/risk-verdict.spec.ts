import { verdictOf, weightiest, type Finding } from './risk-verdict.ts';

const measures = { bot_detection: 'log', brute_force_attack: 'block', credential_stuffing: 'challenge', restriction: 'block' } as const;
const found = (by: Finding['by']): Finding => ({ by, reason: by, blocklistType: by === 'restriction' ? 'email' : null });

describe('the verdict on an attempt', () => {
  it('is that of the measure that weighs most', () => {
    const findings = [found('bot_detection'), found('credential_stuffing'), found('restriction'), found('brute_force_attack')];
    expect(weightiest(findings, measures)).toBe(findings[2]);
    expect(weightiest(findings, { ...measures, restriction: 'off', brute_force_attack: 'log' })).toBe(findings[1]);
  });
  it.each([
    ['off', 'allow', null],
    ['log', 'allow', null],
    ['challenge', 'challenge', 'bot_detection'],
    ['block', 'block', 'bot_detection'],
  ] as const)('of a control that is set to %s is %s', (measure, verdict, control) => {
    const all = { ...measures, bot_detection: measure };
    expect(verdictOf(weightiest([found('bot_detection')], all), all)).toMatchObject({ verdict, control });
  });
  it('tells what is recorded alone as nothing, although it was found', () => {
    expect(weightiest([found('bot_detection')], measures)?.by).toBe('bot_detection');
    expect(weightiest([found('bot_detection')], { ...measures, bot_detection: 'off' })).toBeNull();
  });
  it('uses words that clients know', () => expect(verdictOf(found('credential_stuffing'), measures).control).toBe('brute_force_attack'));
  it('says what is on the block list', () => expect(verdictOf(found('restriction'), measures).blocklistType).toBe('email'));
});
