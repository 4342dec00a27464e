import { Integer, OneOf, Optional, Text } from './fields.ts';
import { Query, type List } from './operation.ts';

/** What every list takes. `after` and `before` are object ids; give at most one. */
export abstract class PageQuery<T> extends Query<List<T>> {
  @Optional() @Integer({ doc: 'How many objects a page has.', minimum: 1, maximum: 100, default: 10 }) limit!: number;
  @Optional() @OneOf(['asc', 'desc', 'normal'], { doc: 'By time of creation, `desc` unless given; `normal` is descending with mirrored cursors.' }) order?:
    'asc' | 'desc' | 'normal';
  @Optional() @Text({ doc: 'The objects that follow this id in the requested order.', max: 128 }) after?: string;
  @Optional() @Text({ doc: 'The objects that precede this id in the requested order.', max: 128 }) before?: string;
}
