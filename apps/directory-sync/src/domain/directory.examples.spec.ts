import { itReadsStoredExamples } from '#libs/testing/src/stored-examples';
import { directoriesView } from '../views/directories.view.ts';
import { directoryDecider } from './directory.decider.ts';

describe('the log of a directory', () => itReadsStoredExamples(directoryDecider, directoriesView.handles, new URL('directory.examples.json', import.meta.url)));
