# SPDX-License-Identifier: Apache-2.0
# OpenMM: a few steps of molecular dynamics (bonds, angles, charges by particle mesh Ewald) on
# the OpenCL platform; energies agree with those of its CPU platform.
import sys

import numpy
import openmm


def make_system(molecules_per_side):
    """Molecules of three atoms on a grid."""
    system = openmm.System()
    side = 0.35 * molecules_per_side
    system.setDefaultPeriodicBoxVectors((side, 0, 0), (0, side, 0), (0, 0, side))
    forces = openmm.NonbondedForce()
    forces.setNonbondedMethod(openmm.NonbondedForce.PME)
    forces.setCutoffDistance(0.45 * side)
    bonds, angles = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    positions = []
    for number in range(molecules_per_side**3):
        first = 3 * number
        center = numpy.array([number // molecules_per_side**k % molecules_per_side for k in range(3)])
        for atom, (mass, charge, place) in enumerate(
            [(16, -0.8, (0, 0, 0)), (1, 0.4, (0.1, 0, 0)), (1, 0.4, (-0.03, 0.095, 0))]
        ):
            system.addParticle(mass)
            forces.addParticle(charge, 0.31 if atom == 0 else 0.1, 0.65 if atom == 0 else 0)
            positions.append(openmm.Vec3(*(0.35 * center + place)))
        bonds.addBond(first, first + 1, 0.1, 400000)
        bonds.addBond(first, first + 2, 0.1, 400000)
        angles.addAngle(first + 1, first, first + 2, 1.82, 600)
        forces.createExceptionsFromBonds([(first, first + 1), (first, first + 2)], 0, 0)
    for force in (forces, bonds, angles):
        system.addForce(force)
    return system, positions


def energies(platform, system, positions):
    integrator = openmm.VerletIntegrator(0.0005)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform))
    context.setPositions(positions)
    result = []
    for _ in range(4):
        state = context.getState(getEnergy=True, getForces=True)
        result.append([state.getPotentialEnergy()._value, state.getKineticEnergy()._value])
        integrator.step(5)
    return numpy.array(result)


system, positions = make_system(4)
found = energies("OpenCL", system, positions)
expected = energies("CPU", system, positions)
print("largest difference", numpy.abs(found - expected).max(), "of", numpy.abs(expected).max())
sys.exit(0 if numpy.allclose(found, expected, rtol=1e-3, atol=1e-1) else 1)
