import { setFlagsFromString } from 'node:v8';

/**
 * Every object begins young, and is old once it has outlived two collections. V8 looks at what becomes of the objects that a place in the code makes, and where most of a
 * hundred lived on, has all later ones of that place begin old: a start or a burst teaches it that of cursors, pages and rows, which are garbage with the next request and
 * then lie there until the old heap is collected. A full listing of 200,000 people, 1 % changed, took 229 MB with it and 127 without; creations and audit events cost what they did.
 * @remarks counts for code that is compiled from here on: call it before there is work
 */
export function beginObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
