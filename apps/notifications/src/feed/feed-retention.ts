import { Injectable, type OnModuleInit } from '@nestjs/common';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { FeedReader } from '../readers/feed-reader.ts';

/** Takes events from the feed when their retention is over. */
@Injectable()
export class FeedRetention implements OnModuleInit {
  constructor(
    private readonly feed: FeedReader,
    private readonly sweeps: EnvironmentSweeps,
  ) {}

  onModuleInit(): void {
    this.sweeps.add('events_feed', (environment, _now, limit) => this.feed.sweep(environment, limit));
  }
}
