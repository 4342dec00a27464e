import { Const, Flag, Id, Text, Time } from '../fields.ts';

/** Where browsers may be sent after a sign-in. */
export class RedirectUri {
  @Const('redirect_uri') object!: 'redirect_uri';
  @Id('redir', { doc: 'Identifies the redirect URI.' }) id!: string;
  @Text({
    doc: 'The address, compared letter by letter: https, http of localhost, or of a scheme of an app.',
    max: 2_048,
    example: 'https://acme.test/callback',
  })
  uri!: string;
  @Flag({ doc: 'Whether it is taken where none is named.' }) default!: boolean;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}

/** Whose scripts may read answers of this API in a browser. */
export class CorsOrigin {
  @Const('cors_origin') object!: 'cors_origin';
  @Id('cors_origin', { doc: 'Identifies the origin.' }) id!: string;
  @Text({ doc: 'Scheme, host and port.', max: 300, example: 'https://acme.test' }) origin!: string;
  @Time({ doc: 'When it was created.' }) created_at!: string;
  @Time({ doc: 'When it changed last.' }) updated_at!: string;
}
