/** What a container gets: CPU, memory, devices, shared memory and volumes. */
import { Checkbox, Input, InputNumber, Select, Slider, Switch } from 'antd';
import { useView } from '../app/hooks.ts';
import { useText } from '../app/i18n.tsx';
import { asText, ClaimInput, NameInput, QuantityControl, useFieldWords } from './controls.tsx';
import { useForm, useValue } from './context.tsx';
import type { Path } from './document.ts';
import { Field } from './Field.tsx';
import { AddButton, LateInput, RemoveButton } from './lists.tsx';
import {
  addVolume,
  changeVolume,
  deviceOf,
  nearestSize,
  removeVolume,
  setDevice,
  setSharedMemory,
  sharedMemory,
  SIZES,
  VOLUME_TYPES,
  volumeRows,
  type Pod,
  type VolumeRow,
  type VolumeType,
} from './pods.ts';

interface Machine {
  resources: { resource: string; allocatable: number; requested: number }[];
}

/** Devices that clusters usually have; those of this cluster come first. */
const USUAL_DEVICES = ['nvidia.com/gpu'];

export function Resources({ path }: { path: Path }) {
  return (
    <>
      <QuantityControl path={[...path, 'requests', 'cpu']} label="cpuRequest" example="4" />
      <QuantityControl path={[...path, 'limits', 'cpu']} label="cpuLimit" example="8" />
      <QuantityControl path={[...path, 'requests', 'memory']} label="memoryRequest" example="8Gi" />
      <QuantityControl path={[...path, 'limits', 'memory']} label="memoryLimit" example="16Gi" />
      <Devices path={path} />
    </>
  );
}

function Devices({ path }: { path: Path }) {
  const { create } = useText();
  const form = useForm();
  const { value, findings } = useValue(path);
  const { data } = useView<Machine>('overview', { namespace: form.namespace });
  const words = useFieldWords('gpu');
  const count = useFieldWords('gpuCount');
  const [device, amount] = deviceOf(value);
  const here = (data?.resources ?? []).filter(({ resource }) => resource.includes('/'));
  const names = [...new Set([...here.map(({ resource }) => resource), ...USUAL_DEVICES, ...(device === '' ? [] : [device])])];
  const known = here.find(({ resource }) => resource === device);
  const free = known ? known.allocatable - known.requested : 0;
  const note = device !== '' && data !== undefined && (
    <span className={!known || Number(amount) > free ? 'pf-warning' : ''}>
      {known ? create.control.free(String(free), String(known.allocatable)) : create.control.noDevices}
      {known && Number(amount) > free && ` ${create.control.tooMany}`}
    </span>
  );
  const wrong = findings.filter((finding) => finding.path.includes('/'));
  return (
    <>
      <Field {...words} path={[...path, 'limits', device || 'device']} findings={wrong} note={note || undefined}>
        {(ids) => (
          <Select
            {...ids}
            value={device === '' ? undefined : device}
            placeholder={create.control.noGpu}
            allowClear
            options={names.map((name) => ({ value: name, label: name }))}
            onChange={(next: string | undefined) => form.write(setDevice(path, value, next ?? '', next === undefined ? null : Number(amount) || 1))}
          />
        )}
      </Field>
      <Field {...count}>
        {(ids) => (
          <InputNumber
            {...ids}
            min={0}
            precision={0}
            value={amount === '' ? null : Number(amount)}
            onChange={(next) => form.write(setDevice(path, value, device || (names[0] ?? ''), next ? next : null))}
          />
        )}
      </Field>
    </>
  );
}

/** One slider for the volume in memory and its mount at /dev/shm. */
export function SharedMemory({ pod }: { pod: Pod }) {
  const { create } = useText();
  const form = useForm();
  const words = useFieldWords('sharedMemory');
  const size = sharedMemory(pod);
  const isOn = size !== null;
  return (
    <Field {...words} isWide isGroup>
      {() => (
        <div className="pf-memory">
          <Switch size="small" aria-label={words.label} checked={isOn} onChange={(on) => form.write(setSharedMemory(pod, on ? '1Gi' : null))} />
          <Slider
            disabled={!isOn}
            min={0}
            max={SIZES.length - 1}
            value={nearestSize(size ?? '1Gi')}
            ariaLabelForHandle={words.label}
            tooltip={{ formatter: (index) => SIZES[index ?? 0] }}
            onChange={(index: number) => form.write(setSharedMemory(pod, SIZES[index]!))}
          />
          <Input
            aria-label={`${words.label}: ${create.fields.size}`}
            disabled={!isOn}
            placeholder={isOn ? create.control.noLimit : ''}
            value={size ?? ''}
            onChange={(event) => form.write(setSharedMemory(pod, event.target.value.trim()))}
          />
        </div>
      )}
    </Field>
  );
}

export function Volumes({ pod }: { pod: Pod }) {
  const { create } = useText();
  const form = useForm();
  const words = useFieldWords('volumes');
  const volumes = useValue([...pod.at, 'volumes']);
  const mounts = useValue([...pod.at, 'containers', pod.container, 'volumeMounts']);
  const rows = volumeRows(pod);
  return (
    <Field {...words} path={[...pod.at, 'volumes']} findings={[...volumes.findings, ...mounts.findings]} isWide isGroup>
      {() => (
        <div className="pf-rows">
          {rows.map((row, index) => (
            <Volume key={index} pod={pod} row={row} number={index + 1} />
          ))}
          <AddButton onClick={() => form.write(addVolume(pod, 'claim'))}>{create.control.addVolume}</AddButton>
        </div>
      )}
    </Field>
  );
}

function Volume({ pod, row, number }: { pod: Pod; row: VolumeRow; number: number }) {
  const { create } = useText();
  const form = useForm();
  const change = (patch: Partial<VolumeRow>) => form.write(changeVolume(pod, row, patch));
  const types: VolumeType[] = row.type === 'other' ? [...VOLUME_TYPES, 'other'] : [...VOLUME_TYPES];
  return (
    <div className="pf-volume" role="group" aria-label={`${create.fields.volumes} ${number}`}>
      <Select
        aria-label={`${create.control.volumeType} ${number}`}
        value={row.type}
        options={types.map((type) => ({ value: type, label: create.volumeTypes[type] }))}
        onChange={(type: VolumeType) => change({ type })}
      />
      <VolumeSource row={row} number={number} set={(source) => change({ source })} />
      <RemoveButton label={`${create.control.remove} ${row.name}`} onClick={() => form.write(removeVolume(pod, row))} />
      <LateInput label={`${create.control.mountName} ${number}`} placeholder={create.control.mountName} value={row.name} set={(name) => change({ name })} />
      <Input aria-label={`${create.control.mountPath} ${number}`} placeholder={create.control.mountPath} value={row.mountPath} onChange={(event) => change({ mountPath: event.target.value })} />
      <Input aria-label={`${create.control.subPath} ${number}`} placeholder={create.control.subPath} value={row.subPath} disabled={row.mount < 0} onChange={(event) => change({ subPath: event.target.value })} />
      <Checkbox checked={row.readOnly} disabled={row.mount < 0} onChange={(event) => change({ readOnly: event.target.checked })}>
        {create.control.readOnly}
      </Checkbox>
    </div>
  );
}

function VolumeSource({ row, number, set }: { row: VolumeRow; number: number; set: (source: string) => void }) {
  const { create } = useText();
  const label = `${create.control.source} ${number}`;
  switch (row.type) {
    case 'claim':
      return <ClaimInput ids={{}} label={label} value={row.source} set={set} />;
    case 'secret':
      return <NameInput ids={{}} label={label} resource="secrets" value={row.source} set={set} />;
    case 'configMap':
      return <NameInput ids={{}} label={label} resource="configmaps" value={row.source} set={set} />;
    case 'other':
      return <span className="pl-faint">{create.volumeTypes.other}</span>;
    default: {
      const isSize = row.type !== 'hostPath';
      return <Input aria-label={label} placeholder={isSize ? create.control.noLimit : '/data'} value={asText(row.source)} onChange={(event) => set(event.target.value)} />;
    }
  }
}
