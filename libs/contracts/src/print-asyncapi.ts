import { releaseVersion } from '#libs/platform/src/release';
import './all.ts';
import { asyncApiDocument } from './asyncapi.ts';

process.stdout.write(`${JSON.stringify(asyncApiDocument(releaseVersion()), null, 2)}\n`);
