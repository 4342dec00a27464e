import { feature } from '#libs/runtime/src/feature';
import { jwtTemplateDecider } from '../domain/jwt-template.decider.ts';
import { TokenTemplates } from '../readers/token-templates.ts';
import { JwtTemplates } from './jwt-templates.ts';

export const jwtTemplates = feature({ deciders: [jwtTemplateDecider], providers: [JwtTemplates, TokenTemplates] });
