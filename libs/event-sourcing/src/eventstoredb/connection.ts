import { NotLeaderError, UnavailableError } from '@eventstore/db-client';
import type { CallOptions } from '@grpc/grpc-js';
import { within } from '#libs/platform/src/deadline';
import { unavailable } from '#libs/platform/src/domain-error';
import { type Position, START } from '../log/event-store.ts';
import { BatchAppends } from './batch-appends.ts';
import { checkedUrl } from './connection-string.ts';
import { type Driver, driverFor, StreamsClient } from './driver.ts';
import { driverErrorOf } from './failures.ts';
import { LogSubscription, type Receive } from './log-subscription.ts';
import { allFollowing, type BatchRequest, type BatchResponse, type ReadRequest, type ReadResponse } from './wire.ts';

/** A connection that carries nothing is asked for a sign of life after the first, and given up after the second. The driver recommends no less than the first. */
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE_TIMEOUT_MS = 3_000;
/** At least this long between two connections. */
const RENEW_MS = 1_000;
const NO_DEADLINE: CallOptions = { deadline: Infinity };

interface Cancelled {
  cancel(): void;
}

/** One life of the connection: what is open on it ends with it. */
interface Link {
  readonly driver: Driver;
  readonly openedAt: number;
  readonly calls: Set<Cancelled>;
  service: StreamsClient | null;
  appends: Promise<BatchAppends> | null;
}

/** A connection to EventStoreDB that is replaced when it breaks, or when nothing comes over it any more. */
export class Connection {
  private readonly url: string;
  private link: Link;
  private links = 0;
  private heardAt = 0;
  private isClosed = false;

  /** @throws StartRefused when the text is no connection string */
  constructor(url: string) {
    this.url = checkedUrl(url);
    this.link = this.opened();
  }

  close(): void {
    this.isClosed = true;
    this.end(this.link);
  }

  /** All that a read is answered, or the first of it: some servers look for the next before they end a read. */
  async read(request: ReadRequest, milliseconds: number, enough = Infinity): Promise<readonly ReadResponse[]> {
    return this.used(milliseconds, async (link) => {
      const service = await this.serviceOf(link);
      const call = service.read(request, ...link.driver.callArguments({ requiresLeader: true, deadline: milliseconds }));
      link.calls.add(call);
      // What comes of it after it was left is of no interest.
      call.on('error', () => {});
      try {
        const responses: ReadResponse[] = [];
        for await (const response of call as AsyncIterable<ReadResponse>) {
          responses.push(response);
          this.heard();
          if (responses.length >= enough) break;
        }
        return responses;
      } finally {
        call.cancel();
        link.calls.delete(call);
      }
    });
  }

  /** What an append is answered. All appends travel on one call. */
  async append(request: BatchRequest, milliseconds: number): Promise<BatchResponse> {
    return this.used(milliseconds, async (link) => {
      const appends = await (link.appends ??= this.openedAppends(link));
      return appends.append(request);
    });
  }

  /** Whatever becomes of it is told to whoever asks for its events. */
  follow(after: Position, receive: Receive): LogSubscription {
    const { link } = this;
    const request = allFollowing(after === START ? null : after);
    const opening = this.serviceOf(link).then((service) => {
      const call = service.read(request, ...link.driver.callArguments({ requiresLeader: false }, NO_DEADLINE));
      link.calls.add(call);
      call.on('close', () => link.calls.delete(call));
      call.on('error', (error) => {
        if (driverErrorOf(error) instanceof UnavailableError) this.giveUp(link);
      });
      return call;
    });
    return new LogSubscription(opening, after, receive, () => this.heard());
  }

  /** @throws what the driver threw, as one of its errors; `unavailable` when that took too long */
  private async used<Answer>(milliseconds: number, use: (link: Link) => Promise<Answer>): Promise<Answer> {
    const { link } = this;
    const askedAt = Date.now();
    try {
      return await within(use(link), milliseconds, () => unavailable('EventStoreDB did not answer in time.'));
    } catch (thrown) {
      const error = driverErrorOf(thrown as Error);
      if (error instanceof NotLeaderError && link.service !== null) await link.driver.handleError(link.service, thrown as Error).catch(() => {});
      else if (this.heardAt < askedAt) this.giveUp(link);
      throw error;
    }
  }

  /** The driver's channel would wait longer and longer before it connects again, and would take a peer that is silent for alive for a while. */
  private giveUp(link: Link): void {
    if (this.link !== link || this.isClosed || Date.now() - link.openedAt < RENEW_MS) return;
    this.link = this.opened();
    this.end(link);
  }

  private opened(): Link {
    const separator = this.url.includes('?') ? '&' : '?';
    // Channels with the same settings share a connection, and its waiting time: a number of its own keeps each apart.
    const timeout = KEEP_ALIVE_TIMEOUT_MS + (this.links++ % KEEP_ALIVE_TIMEOUT_MS);
    const driver = driverFor(`${this.url}${separator}keepAliveInterval=${KEEP_ALIVE_MS}&keepAliveTimeout=${timeout}`);
    return { driver, openedAt: Date.now(), calls: new Set(), service: null, appends: null };
  }

  private end({ calls, service }: Link): void {
    for (const call of calls) call.cancel();
    service?.close();
  }

  private async serviceOf(link: Link): Promise<StreamsClient> {
    link.service = await link.driver.getGRPCClient(StreamsClient, 'streams');
    return link.service;
  }

  private async openedAppends(link: Link): Promise<BatchAppends> {
    const isOver = (): void => {
      link.appends = null;
    };
    try {
      const service = await this.serviceOf(link);
      const call = service.batchAppend(...link.driver.callArguments({ requiresLeader: true }, NO_DEADLINE));
      link.calls.add(call);
      call.on('close', () => link.calls.delete(call));
      return new BatchAppends(call, { heard: () => this.heard(), isOver });
    } catch (error) {
      isOver();
      throw error;
    }
  }

  private heard(): void {
    this.heardAt = Date.now();
  }
}
