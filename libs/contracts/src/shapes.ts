/** What an upcast may change; everything else about an event stands for ever. The subject is null where an event announces nothing. */
export interface Upcastable {
  readonly data: unknown;
  readonly subject: unknown;
}

/** From one shape to the next. Pure, and never edited once it was released. */
export type Upcast = (event: Upcastable) => Upcastable;

/** By event type: how shape 1 becomes shape 2, shape 2 shape 3, and so on. The last one is what everybody reads. */
export type Upcasts = Readonly<Record<string, readonly Upcast[]>>;

/** The shapes of the events of a resource. */
export interface EventShapes {
  readonly upcasts?: Upcasts;
  /** By event type: the shape that this release writes, where it is not yet the last that it reads. A release reads a shape before a later one writes it. */
  readonly writes?: Readonly<Record<string, number>>;
}

/**
 * The shapes of all services. Every process reads the events of others, so it needs all upcasts: those of a resource stand beside it in `<resource>.shapes.ts`, are
 * listed here, and are what its decider says.
 */
export const SHAPES: readonly EventShapes[] = [];
