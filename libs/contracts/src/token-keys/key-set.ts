import { ListOf, OneOf, Optional, Picked, Text, Time } from '../fields.ts';
import { EnvironmentSettings, type TokenAlgorithm } from '../environment-settings/environment-settings.ts';

const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** A public key that tokens are signed with (RFC 7517). */
export class PublicTokenKey {
  @OneOf(['RSA', 'EC'], { doc: 'Kind of key.' }) kty!: 'RSA' | 'EC';
  @OneOf(['sig'], { doc: 'It verifies signatures.' }) use!: 'sig';
  @Picked(EnvironmentSettings, 'token_algorithm') alg!: TokenAlgorithm;
  @Text({ doc: 'Which key it is: tokens name it in their header.', pattern: BASE64URL, example: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs' }) kid!: string;
  @Optional() @Text({ doc: 'Of an RSA key: the modulus.', pattern: BASE64URL }) n?: string;
  @Optional() @Text({ doc: 'Of an RSA key: the exponent.', pattern: BASE64URL }) e?: string;
  @Optional() @OneOf(['P-256'], { doc: 'Of an EC key: the curve.' }) crv?: 'P-256';
  @Optional() @Text({ doc: 'Of an EC key: a coordinate.', pattern: BASE64URL }) x?: string;
  @Optional() @Text({ doc: 'Of an EC key: the other coordinate.', pattern: BASE64URL }) y?: string;
  @ListOf({ text: {} }, { doc: 'A certificate of the key, signed with itself (base64): for clients that read keys from nothing else.' })
  x5c!: readonly string[];
  @Text({ doc: 'SHA-256 of the certificate.', pattern: BASE64URL }) 'x5t#S256'!: string;
}

/** The keys that verify the tokens of an environment. */
export class TokenKeySet {
  @ListOf(() => PublicTokenKey, { doc: 'Those that sign, those that will, and those whose tokens may still be valid.' }) keys!: readonly PublicTokenKey[];
}

/** What came of a rotation. */
export class RotatedTokenKey {
  @Picked(PublicTokenKey) kid!: string;
  @Picked(PublicTokenKey) alg!: TokenAlgorithm;
  @Time({ doc: 'From when on it signs.' }) signs_from!: string;
}
