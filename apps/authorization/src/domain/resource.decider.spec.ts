import type { Decider, Decision } from '#libs/event-sourcing/src/deciding/decider';
import { specOf } from '#libs/testing/src/decider-spec';
import { StillClosing } from '#libs/event-sourcing/src/deciding/guards/closings.decider';
import {
  closeResource,
  createResource,
  deleteResource,
  deleteUnusedResource,
  reopenResource,
  updateResource,
  type ResourceReference,
  type TypeOfResource,
} from './resource.decider.ts';
import type { ResourceEvent } from './resource.events.ts';
import { organizationResourceId, ResourceTree } from './resource-tree.ts';

const ORGANIZATION = 'org_01J00000000000000000000000';
const ROOT = organizationResourceId(ORGANIZATION);
const TOP = { id: null, slug: 'organization', parents: [] };
const WORKSPACE: TypeOfResource = { id: 'resource_type_w', slug: 'workspace', parents: [TOP] };
const PROJECT: TypeOfResource = { id: 'resource_type_p', slug: 'project', parents: [TOP, WORKSPACE] };
const TASK: TypeOfResource = { id: 'resource_type_t', slug: 'task', parents: [PROJECT] };
/** Types cannot lie under themselves; resources may have been made before that was so. */
const FOLDER: TypeOfResource = { id: 'resource_type_f', slug: 'folder', parents: [TOP, { id: 'resource_type_f', slug: 'folder' }] };

/** The log of a tree is its state: a tree is made of it for each decision, since it changes in place. */
const log: Decider<readonly ResourceEvent[], ResourceEvent> = {
  category: 'resource_tree',
  foldVersion: 1,
  initial: [],
  sealed: {
    'resource.created': null,
    'resource.updated': null,
    'resource.moved': null,
    'resource.deleted': null,
    'resource.closing': null,
    'resource.reopened': null,
  },
  evolve: (events, { at: _at, ...event }) => [...events, event],
  toPublicEvent: () => null,
};

function treeOf(events: readonly ResourceEvent[]): ResourceTree {
  const tree = new ResourceTree(ORGANIZATION).loaded();
  events.forEach((event, index) => tree.apply(event, index + 1));
  return tree;
}

type Decide = Decision<ResourceTree, ResourceEvent>;
const onTree =
  (decide: Decide): Decision<readonly ResourceEvent[], ResourceEvent> =>
  (events, context) =>
    decide(treeOf(events), context);

const spec = specOf(log);
const id = spec.id('authz_resource');
const idOf = (name: string): string => `authz_resource_01J${name.toUpperCase().padStart(23, '0')}`;
const called = (name: string): ResourceReference => ({ id: idOf(name) });

function created(name: string, type: TypeOfResource, parent = ROOT): ResourceEvent {
  return {
    type: 'resource.created',
    data: {
      id: idOf(name),
      organization_id: ORGANIZATION,
      external_id: name,
      resource_type_id: type.id!,
      resource_type_slug: type.slug,
      parent_resource_id: parent,
      name,
      description: null,
    },
  };
}

const moved = (name: string, parent: string): ResourceEvent => ({ type: 'resource.moved', data: { id: idOf(name), parent_resource_id: parent } });
const deleted = (name: string): ResourceEvent => ({ type: 'resource.deleted', data: { id: idOf(name) } });

function given(...events: readonly ResourceEvent[]) {
  return { when: (decide: Decide) => spec.given(...events).when(onTree(decide)) };
}

const given_ = { external_id: 'new', name: 'New' };
const creation = (type: TypeOfResource, parent: ResourceReference | null = null) => createResource({ ...given_, type, parent });
const fact = (type: TypeOfResource, parent = ROOT): ResourceEvent => {
  const event = created('new', type, parent) as Extract<ResourceEvent, { type: 'resource.created' }>;
  return { ...event, data: { ...event.data, id, name: 'New' } };
};

describe('a resource', () => {
  describe('is created', () => {
    it('under its organization, unless something else is named', () => given().when(creation(WORKSPACE)).then(fact(WORKSPACE)));

    it('under another resource, by either of its ids', () => {
      given(created('w', WORKSPACE))
        .when(creation(PROJECT, called('w')))
        .then(fact(PROJECT, idOf('w')));
      given(created('w', WORKSPACE))
        .when(creation(PROJECT, { type: WORKSPACE, externalId: 'w' }))
        .then(fact(PROJECT, idOf('w')));
      given()
        .when(creation(PROJECT, { type: TOP, externalId: ORGANIZATION }))
        .then(fact(PROJECT));
      given()
        .when(creation(PROJECT, { id: ROOT }))
        .then(fact(PROJECT));
    });

    it('with a description', () => {
      given()
        .when(createResource({ ...given_, description: 'More', type: WORKSPACE, parent: null }))
        .thenMatching({ data: { description: 'More' } });
    });

    it('not under what is not there', () => {
      given()
        .when(creation(PROJECT, called('w')))
        .thenRefused('entity_not_found');
      given(created('w', WORKSPACE), deleted('w'))
        .when(creation(PROJECT, called('w')))
        .thenRefused('entity_not_found');
      given()
        .when(creation(PROJECT, { type: WORKSPACE, externalId: 'w' }))
        .thenRefused('entity_not_found');
    });

    it('not under what is not there, which is named as the caller named it', () => {
      const named = (parent: ResourceReference) => () => creation(PROJECT, parent)(treeOf([]), contextOf());
      expect(named(called('w'))).toThrow(idOf('w'));
      expect(named({ type: WORKSPACE, externalId: 'own-name' })).toThrow('own-name');
    });

    it('not under a type that is no parent of its own', () => {
      given().when(creation(TASK)).thenRefused('bad_request');
      given(created('w', WORKSPACE))
        .when(creation(TASK, called('w')))
        .thenRefused('bad_request');
      given(created('w', WORKSPACE))
        .when(creation(WORKSPACE, called('w')))
        .thenRefused('bad_request');
      given(created('p', PROJECT))
        .when(creation(TASK, called('p')))
        .then(fact(TASK, idOf('p')));
    });

    it('not of the type organization, whatever it may hang under', () => {
      given().when(creation(TOP)).thenRefused('bad_request');
      given()
        .when(creation({ ...TOP, parents: [TOP] }))
        .thenRefused('bad_request');
    });

    it('at most five levels under its organization', () => {
      const four = ['a', 'b', 'c', 'd'].map((name, index, names) => created(name, FOLDER, index === 0 ? ROOT : idOf(names[index - 1]!)));
      given(...four)
        .when(creation(FOLDER, called('d')))
        .then(fact(FOLDER, idOf('d')));
      given(...four, created('e', FOLDER, idOf('d')))
        .when(creation(FOLDER, called('e')))
        .thenRefused('bad_request');
    });

    it('with an external id that no other of its type has', () => {
      given(created('new', WORKSPACE)).when(creation(WORKSPACE)).thenRefused('authorization_resource_external_id_conflict');
      given(created('new', PROJECT)).when(creation(WORKSPACE)).then(fact(WORKSPACE));
    });

    it('with an external id of something deleted, also of what hung under it', () => {
      given(created('new', WORKSPACE), deleted('new')).when(creation(WORKSPACE)).then(fact(WORKSPACE));
      given(created('w', WORKSPACE), created('new', PROJECT, idOf('w')), deleted('w'))
        .when(creation(PROJECT))
        .then(fact(PROJECT));
    });

    it('once, however often it is asked for', () => given(fact(WORKSPACE)).when(creation(WORKSPACE)).thenNothing());
  });

  describe('is changed', () => {
    const texts = { name: 'p', description: null };
    const update = (
      change: Parameters<typeof updateResource>[1],
      reference: ResourceReference = called('p'),
      type: TypeOfResource | null = PROJECT,
      known = texts,
    ) => updateResource(reference, change, type, known);
    const tree = [created('w', WORKSPACE), created('v', WORKSPACE), created('p', PROJECT, idOf('w'))] as const;

    // The texts are not in the tree, so a repeat is decided on those that the first left.
    const thenTexts = (change: Parameters<typeof updateResource>[1], ...facts: readonly ResourceEvent[]) => {
      expect(update(change)(treeOf(tree), contextOf())).toEqual(facts);
      const data = facts.reduce((all, event) => ({ ...all, ...event.data }), {});
      expect(update(change, called('p'), PROJECT, { ...texts, ...data })(treeOf([...tree, ...facts]), contextOf())).toEqual([]);
    };

    it('in its name and description', () => {
      thenTexts({ name: 'Other', parent: null }, { type: 'resource.updated', data: { id: idOf('p'), name: 'Other' } });
      thenTexts({ name: 'p', description: 'More', parent: null }, { type: 'resource.updated', data: { id: idOf('p'), description: 'More' } });
    });

    it('not at all where nothing is new', () => {
      given(...tree)
        .when(update({ parent: null }))
        .thenNothing();
      given(...tree)
        .when(update({ ...texts, parent: called('w') }))
        .thenNothing();
    });

    it('in its place', () => {
      given(...tree)
        .when(update({ parent: called('v') }))
        .then(moved('p', idOf('v')));
      given(...tree)
        .when(update({ parent: { type: WORKSPACE, externalId: 'v' } }))
        .then(moved('p', idOf('v')));
      given(...tree)
        .when(update({ parent: { id: ROOT } }))
        .then(moved('p', ROOT));
    });

    it('in all of it at once', () =>
      thenTexts({ name: 'Other', parent: called('v') }, { type: 'resource.updated', data: { id: idOf('p'), name: 'Other' } }, moved('p', idOf('v'))));

    it('not to a place under itself', () => {
      const folders = [created('a', FOLDER), created('b', FOLDER, idOf('a')), created('c', FOLDER, idOf('b'))];
      for (const under of ['a', 'b', 'c'])
        given(...folders)
          .when(update({ parent: called(under) }, called('a'), FOLDER))
          .thenRefused('bad_request');
    });

    it('not to a place under a type that is no parent of its own', () => {
      given(...tree)
        .when(update({ parent: { id: ROOT } }, called('p'), TASK))
        .thenRefused('bad_request');
      given(...tree)
        .when(update({ parent: called('v') }, called('p'), null))
        .thenRefused('entity_not_found');
    });

    it('not to a place that is not there', () =>
      given(...tree, deleted('v'))
        .when(update({ parent: called('v') }))
        .thenRefused('entity_not_found'));

    it('only as far down as what hangs under it allows', () => {
      const folders = ['a', 'b', 'c'].map((name, index, names) => created(name, FOLDER, index === 0 ? ROOT : idOf(names[index - 1]!)));
      const others = [created('x', FOLDER), created('y', FOLDER, idOf('x'))];
      given(...folders, ...others)
        .when(update({ parent: called('c') }, called('x'), FOLDER))
        .then(moved('x', idOf('c')));
      given(...folders, ...others, created('z', FOLDER, idOf('y')))
        .when(update({ parent: called('c') }, called('x'), FOLDER))
        .thenRefused('bad_request');
    });

    it('not where it is no more', () => {
      given()
        .when(update({ name: 'x', parent: null }))
        .thenRefused('entity_not_found');
      given(...tree, deleted('w'))
        .when(update({ name: 'x', parent: null }))
        .thenRefused('entity_not_found');
    });

    it('not where it stands for its organization', () => {
      given()
        .when(update({ name: 'x', parent: null }, { id: ROOT }, TOP))
        .thenRefused('bad_request');
      given()
        .when(update({ parent: null }, { type: TOP, externalId: ORGANIZATION }, TOP))
        .thenRefused('bad_request');
    });
  });

  describe('is deleted', () => {
    const thenGone = (events: readonly ResourceEvent[], decide: Decide) => {
      expect(decide(treeOf(events), contextOf())).toEqual([deleted('w')]);
      // Another request finds nothing any more.
      given(...events, deleted('w'))
        .when(decide)
        .thenRefused('entity_not_found');
    };
    const tree = [created('w', WORKSPACE), created('p', PROJECT, idOf('w'))];

    it('with all that hangs under it, as one event', () => thenGone(tree, deleteResource(called('w'))));

    it('once what hung under it was moved away', () => {
      thenGone([...tree, moved('p', ROOT)], deleteResource({ type: WORKSPACE, externalId: 'w' }));
    });

    const NOW = Date.parse('2026-01-15T12:00:00.000Z');
    const closing: ResourceEvent = { type: 'resource.closing', data: { id: idOf('w'), intent: 'mine' } };
    const reopened: ResourceEvent = { type: 'resource.reopened', data: { id: idOf('w'), intent: 'mine' } };
    const isOpen = { intent: 'mine', open: { intent: 'mine', at: '2026-01-15T12:00:00.000Z' } };
    const ofAnother = { intent: 'mine', open: { intent: 'of another', at: '2026-01-15T11:59:50.000Z' } };

    it('unless something hangs under it, only while the intent to do so is open', () => {
      const decided = (events: readonly ResourceEvent[], decide: Decide) => decide(treeOf(events), contextOf());
      expect(decided([created('w', WORKSPACE)], deleteUnusedResource(idOf('w'), isOpen))).toEqual([deleted('w')]);
      given(created('w', WORKSPACE))
        .when(deleteUnusedResource(idOf('w'), ofAnother))
        .thenRefused('resource_has_dependents');
      given(created('w', WORKSPACE))
        .when(deleteUnusedResource(idOf('w'), { intent: 'mine', open: null }))
        .thenRefused('resource_has_dependents');
      given(...tree)
        .when(deleteUnusedResource(idOf('w'), isOpen))
        .thenRefused('resource_has_dependents');
      given(created('w', WORKSPACE), deleted('w'))
        .when(deleteUnusedResource(idOf('w'), isOpen))
        .thenNothing();
    });

    it('once one intent has closed it, which may be reopened', () => {
      const decided = (open: typeof isOpen.open | null, now = NOW) =>
        closeResource(called('w'), { intent: 'mine', open }, now)(treeOf([created('w', WORKSPACE)]), contextOf());
      expect(decided(null)).toEqual([closing]);
      expect(decided(isOpen.open)).toEqual([]);
      expect(() => decided(ofAnother.open)).toThrow(StillClosing);
      expect(decided(ofAnother.open, NOW + 1)).toEqual([{ type: 'resource.reopened', data: { id: idOf('w'), intent: 'of another' } }, closing]);
      given(...tree)
        .when(closeResource(called('w'), { intent: 'mine', open: null }, NOW))
        .thenRefused('resource_has_dependents');
      expect(reopenResource(idOf('w'), isOpen)(treeOf([]), contextOf())).toEqual([reopened]);
      expect(reopenResource(idOf('w'), ofAnother)(treeOf([]), contextOf())).toEqual([]);
    });

    it('never where it stands for its organization', () =>
      given()
        .when(deleteResource({ id: ROOT }))
        .thenRefused('bad_request'));
  });
});

function contextOf() {
  return { environment: 'environment_01J00000000000000000000000', now: spec.now, id: spec.id };
}
