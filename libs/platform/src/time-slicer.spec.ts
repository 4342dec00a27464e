import { TimeSlicer } from './time-slicer.ts';

const real = performance.now.bind(performance);
let passed = 0;

beforeEach(() => {
  passed = 0;
  performance.now = () => passed;
});
afterEach(() => {
  performance.now = real;
});

it('goes on at once for as long as the slice lasts, and has a new one after each pause', async () => {
  const slicer = new TimeSlicer();
  expect(slicer.step()).toBeNull();
  passed += 60_000;
  const pause = slicer.step();
  expect(pause).not.toBeNull();
  await pause;
  expect(slicer.step()).toBeNull();
});

it('lets what arrives meanwhile be answered before it goes on', async () => {
  const slicer = new TimeSlicer();
  const seen: string[] = [];
  setImmediate(() => {
    seen.push('arrived');
    setImmediate(() => seen.push('answered'));
  });
  passed += 60_000;
  await slicer.step();
  expect(seen).toEqual(['arrived', 'answered']);
});
