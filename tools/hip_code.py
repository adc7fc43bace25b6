"""Reads AMD code objects, or assembly: their bundle, their notes and their instructions."""
import re
import struct
import subprocess
import tempfile

MAGIC = b'__CLANG_OFFLOAD_BUNDLE__'


def code_objects(path):
    """(architecture, bytes) of each code object of a bundle."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise SystemExit(f'{path}: not a bundle of code objects')
    count, = struct.unpack_from('<Q', data, len(MAGIC))
    at = len(MAGIC) + 8
    for _ in range(count):
        offset, size, length = struct.unpack_from('<QQQ', data, at)
        name = data[at + 24:at + 24 + length].decode()
        at += 24 + length
        if size:
            yield name.split('--')[-1], data[offset:offset + size]


def run(tools, tool, code, *options):
    with tempfile.NamedTemporaryFile(suffix='.o') as file:
        file.write(code)
        file.flush()
        return subprocess.run([f'{tools}/{tool}', *options, file.name], check=True,
                              capture_output=True, text=True).stdout


def kernels(tools, code):
    """What the notes of a code object say of each kernel."""
    return kernels_in(run(tools, 'llvm-readelf', code, '--notes'))


def kernels_in(notes):
    wanted = {
        'name': r'\.name: +(\S+)\n(?=.*\.private)',
        'scratch': r'\.private_segment_fixed_size: (\d+)',
        'shared': r'\.group_segment_fixed_size: (\d+)',
        'threads': r'\.max_flat_workgroup_size: (\d+)',
        'vgprs': r'\.vgpr_count: +(\d+)',
        'agprs': r'\.agpr_count: +(\d+)',
        'sgprs': r'\.sgpr_count: +(\d+)',
        'vgpr_spills': r'\.vgpr_spill_count: (\d+)',
        'wave': r'\.wavefront_size: (\d+)',
    }
    for text in re.split(r'\n  - \.(?:agpr_count|args):', notes)[1:]:
        kernel = {}
        for key, pattern in wanted.items():
            match = re.search(pattern, text, re.S) if key != 'name' else re.search(r'\n    \.name: +(\S+)', text)
            kernel[key] = 0 if not match else match[1] if key == 'name' else int(match[1])
        first = re.match(r' +(\d+)\n', text)
        if first:
            kernel['agprs'] = int(first[1])
        yield kernel


def assembly(path):
    """The architecture, kernels and instructions of a file of assembly, as of a code object."""
    text = path.read_text()
    functions, current = {}, []
    for line in text.split('\n'):
        match = re.match(r'(\w+):', line)
        if match:
            current = functions.setdefault(match[1], [])
        elif line.startswith('\t'):
            current.append(line.strip())
    arch = re.search(r'\.amdgcn_target "\S+-(gfx[^"]+)"', text)[1]
    return arch, kernels_in(text[text.index('.amdgpu_metadata'):]), functions


def instructions(tools, code):
    """The disassembly of each function, by name."""
    functions, current = {}, []
    for line in run(tools, 'llvm-objdump', code, '-d', '--no-show-raw-insn').split('\n'):
        match = re.match(r'[0-9a-f]+ <(\S+)>:', line)
        if match:
            current = functions.setdefault(match[1], [])
        elif line.startswith('\t'):
            current.append(line.strip())
    return functions
