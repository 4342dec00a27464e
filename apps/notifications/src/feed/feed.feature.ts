import { feature } from '#libs/runtime/src/feature';
import { EnvironmentSweeps } from '#libs/runtime/src/environment-sweeps';
import { FeedReader } from '../readers/feed-reader.ts';
import { feedView } from '../views/feed.view.ts';
import { FeedRetention } from './feed-retention.ts';
import { Feed } from './feed.ts';

export const feed = feature({ views: [feedView], providers: [Feed, FeedReader, FeedRetention, EnvironmentSweeps] });
