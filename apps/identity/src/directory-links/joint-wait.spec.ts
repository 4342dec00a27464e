import { JointWait } from './joint-wait.ts';

describe('a joint wait', () => {
  let ends: ((failure?: Error) => void)[];
  const given = () => {
    ends = [];
    const joint = new JointWait(() => new Promise((resolve, reject) => ends.push((failure) => (failure === undefined ? resolve() : reject(failure)))));
    const over: string[] = [];
    const come = (name: string): void =>
      void joint.over().then(
        () => over.push(name),
        () => over.push(`${name} fails`),
      );
    return { over, come };
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it('serves all who come before it begins, and nobody who comes later', async () => {
    const { over, come } = given();
    come('first');
    come('with the first');
    await settled();
    expect(ends).toHaveLength(1);
    come('later');
    come('with the later');
    ends[0]!();
    await settled();
    expect(over).toEqual(['first', 'with the first']);
    expect(ends).toHaveLength(2);
    ends[1]!();
    await settled();
    expect(over).toEqual(['first', 'with the first', 'later', 'with the later']);
    come('last');
    await settled();
    expect(ends).toHaveLength(3);
  });

  it('that fails fails for those whom it served alone', async () => {
    const { over, come } = given();
    come('first');
    await settled();
    come('later');
    ends[0]!(new Error('away'));
    await settled();
    ends[1]!();
    await settled();
    expect(over).toEqual(['first fails', 'later']);
  });
});
