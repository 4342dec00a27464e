import type { Row } from './scenario.ts';

export function row(what: string, target: string, measured: string, met: boolean): Row {
  return { what, target, measured, met };
}

/** Sets this load's idempotency keys apart from those of all others. */
export function unique(): string {
  return `bench-${process.pid}-${Date.now()}`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function rate(perSecond: number): string {
  return `${count(perSecond)}/s`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(2)} s`;
}
