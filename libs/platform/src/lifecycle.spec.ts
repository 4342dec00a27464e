import { Lifecycle, type BackgroundComponent } from './lifecycle.ts';
import { Readiness } from './readiness.ts';

describe('a lifecycle', () => {
  it('starts stage by stage and stops the other way', async () => {
    const steps: string[] = [];
    const part = (name: string, stage: BackgroundComponent['stage']): BackgroundComponent => ({
      name,
      stage,
      start: async () => void steps.push(`start ${name}`),
      stop: async () => void steps.push(`stop ${name}`),
    });
    const lifecycle = new Lifecycle();
    for (const added of [part('job', 'work'), part('forwarder', 'announcements'), part('view', 'views')]) lifecycle.add(added);
    await lifecycle.start();
    await lifecycle.stop();
    expect(steps).toEqual(['start view', 'start forwarder', 'start job', 'stop job', 'stop forwarder', 'stop view']);
  });

  it('stops the rest when a part fails to stop, and says so', async () => {
    const stopped: string[] = [];
    const lifecycle = new Lifecycle();
    lifecycle.add({ name: 'broken', stage: 'work', start: async () => {}, stop: () => Promise.reject(new Error('stuck')) });
    lifecycle.add({ name: 'sound', stage: 'views', start: async () => {}, stop: async () => void stopped.push('sound') });
    await lifecycle.start();
    await expect(lifecycle.stop()).rejects.toThrow(AggregateError);
    expect(stopped).toEqual(['sound']);
  });
});

describe('readiness', () => {
  it('names the view that is being filled and how far it is', () => {
    const readiness = new Readiness();
    expect(readiness.obstacle()).toBe('starting');
    readiness.viewFilled('organizations', 0.429);
    expect(readiness.obstacle()).toBe('filling organizations: 42 %');
    readiness.viewFilled('organizations', 1);
    readiness.start();
    expect(readiness.obstacle()).toBeNull();
    readiness.drain();
    expect(readiness.obstacle()).toBe('draining');
  });
});
