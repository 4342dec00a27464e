import { Injectable } from '@nestjs/common';
import { Cascade } from '#libs/event-sourcing/src/following/cascade';
import { MadeReaction } from '#libs/event-sourcing/src/following/reaction';
import { deleteRemovedFactor } from '../domain/authentication-factor.decider.ts';
import { endWithUnprovenAddress } from '../codes/unproven-addresses.ts';
import { authenticationFactorsView } from '../views/authentication-factors.view.ts';

/** Factors of before the first proof of an address. */
@Injectable()
export class DeleteFactorsOfUnprovenAddresses extends MadeReaction {
  constructor(cascade: Cascade) {
    super(
      endWithUnprovenAddress(cascade, {
        name: 'delete-authentication-factors-of-unproven-addresses',
        view: authenticationFactorsView,
        end: deleteRemovedFactor,
      }),
    );
  }
}
