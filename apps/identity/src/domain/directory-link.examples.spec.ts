import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { directoryLinksView } from '../views/directory-links.view.ts';
import { directoryLinkDecider } from './directory-link.decider.ts';

describe('the log of a link', () =>
  itReadsStoredExamples(directoryLinkDecider, directoryLinksView.handles, new URL('directory-link.examples.json', import.meta.url)));
