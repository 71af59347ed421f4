import { describe, expect, it } from 'vitest';
import { parse, valueAt, writeAll, type Path } from './document.ts';
import { addVolume, changeVolume, deviceOf, nearestSize, removeVolume, setDevice, setSharedMemory, sharedMemory, SIZES, volumeRows, type Change, type Pod } from './pods.ts';

const AT: Path = ['spec', 'template', 'spec'];
const TEXT = `spec:
  template:
    spec:
      containers:
        - name: main
          image: x # the image
`;

function pod(text: string): Pod {
  return { at: AT, container: 0, value: valueAt(parse(text).parts[0]!.value, AT) };
}

function apply(text: string, change: (pod: Pod) => Change[]): string {
  return writeAll(text, 0, change(pod(text)));
}

describe('volumes', () => {
  const one = apply(TEXT, (it) => addVolume(it, 'claim', 'tutorial', '/t9k/mnt'));

  it('a claim is a volume and a mount', () => {
    expect(one).toBe(`${TEXT}          volumeMounts:
            - name: data
              mountPath: /t9k/mnt
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: tutorial
`);
    expect(volumeRows(pod(one))).toMatchObject([{ name: 'data', type: 'claim', source: 'tutorial', mountPath: '/t9k/mnt' }]);
  });

  it.each([
    ['configMap', 'settings', { configMap: { name: 'settings' } }],
    ['secret', 'keys', { secret: { secretName: 'keys' } }],
    ['hostPath', '/data', { hostPath: { path: '/data' } }],
    ['memory', '2Gi', { emptyDir: { medium: 'Memory', sizeLimit: '2Gi' } }],
    ['empty', '', { emptyDir: {} }],
  ] as const)('%s', (type, source, expected) => {
    const text = apply(one, (it) => addVolume(it, type, source, '/x'));
    expect(valueAt(parse(text).parts[0]!.value, [...AT, 'volumes', 1])).toEqual({ name: 'data-2', ...expected });
    expect(volumeRows(pod(text))[1]).toMatchObject({ type, source, mountPath: '/x' });
  });

  it('renaming renames the mount and the volume', () => {
    const text = apply(one, (it) => changeVolume(it, volumeRows(it)[0]!, { name: 'files' }));
    expect(text).toBe(one.replaceAll('name: data', 'name: files'));
  });

  it('another type, source, path and mode', () => {
    let text = apply(one, (it) => changeVolume(it, volumeRows(it)[0]!, { source: 'other' }));
    expect(text).toContain('claimName: other');
    text = apply(text, (it) => changeVolume(it, volumeRows(it)[0]!, { mountPath: '/y', readOnly: true, subPath: 'a/b' }));
    expect(volumeRows(pod(text))[0]).toMatchObject({ mountPath: '/y', readOnly: true, subPath: 'a/b' });
    text = apply(text, (it) => changeVolume(it, volumeRows(it)[0]!, { type: 'secret' }));
    expect(volumeRows(pod(text))[0]).toMatchObject({ type: 'secret', name: 'data', source: '' });
  });

  it('removing removes both, and the empty lists', () => {
    expect(apply(one, (it) => removeVolume(it, volumeRows(it)[0]!))).toBe(TEXT);
  });

  it('a volume that another container mounts stays', () => {
    const text = one.replace('      volumes:', '        - name: side\n          volumeMounts: [{name: data, mountPath: /z}]\n      volumes:');
    expect(apply(text, (it) => removeVolume(it, volumeRows(it)[0]!))).toContain('claimName: tutorial');
  });
});

describe('shared memory', () => {
  it('writes the volume in memory and its mount, changes its size, and takes both away', () => {
    expect(sharedMemory(pod(TEXT))).toBeNull();
    const on = apply(TEXT, (it) => setSharedMemory(it, '4Gi'));
    expect(valueAt(parse(on).parts[0]!.value, AT)).toMatchObject({
      containers: [{ volumeMounts: [{ name: 'dshm', mountPath: '/dev/shm' }] }],
      volumes: [{ name: 'dshm', emptyDir: { medium: 'Memory', sizeLimit: '4Gi' } }],
    });
    expect(sharedMemory(pod(on))).toBe('4Gi');
    expect(volumeRows(pod(on))).toEqual([]);
    expect(apply(on, (it) => setSharedMemory(it, '8Gi'))).toBe(on.replace('4Gi', '8Gi'));
    expect(sharedMemory(pod(apply(on, (it) => setSharedMemory(it, ''))))).toBe('');
    expect(apply(on, (it) => setSharedMemory(it, null))).toBe(TEXT);
  });

  it('finds the stop of the slider for any size', () => {
    expect(SIZES[nearestSize('4Gi')]).toBe('4Gi');
    expect(SIZES[nearestSize('5Gi')]).toBe('4Gi');
    expect(SIZES[nearestSize('')]).toBe('64Mi');
  });
});

describe('devices', () => {
  const resources: Path = ['resources'];
  it('asks for devices by name', () => {
    const text = writeAll('resources:\n  limits: {cpu: "4"}\n', 0, setDevice(resources, {}, 'nvidia.com/gpu', 4));
    expect(text).toBe('resources:\n  limits: {cpu: "4", nvidia.com/gpu: 4}\n');
    const value = { limits: { cpu: '4', 'nvidia.com/gpu': 4 } };
    expect(deviceOf(value)).toEqual(['nvidia.com/gpu', '4']);
    expect(writeAll(text, 0, setDevice(resources, value, 'amd.com/gpu', 2))).toBe('resources:\n  limits: {cpu: "4", amd.com/gpu: 2}\n');
    expect(writeAll(text, 0, setDevice(resources, value, '', null))).toBe('resources:\n  limits: {cpu: "4"}\n');
  });
});
